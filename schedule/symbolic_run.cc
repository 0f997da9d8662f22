#include "schedule/symbolic_run.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

struct SymbolicStage {
  std::map<int, std::string> inputs, outputs;  // by slot
  std::string output_gradient, input_gradient;
  std::string gradients, tied_gradient, norms, verdict;
  int applied = 0;
  size_t place = 0;
};

class SymbolicRun {
 public:
  SymbolicRun(const std::vector<Program>& programs, const Shape& shape, int steps)
      : programs_(programs), shape_(shape), steps_(steps), stages_(programs.size()) {}

  bool Run() {
    bool moved = true;
    while (moved && right_) {
      moved = false;
      for (size_t s = 0; s < programs_.size(); ++s) {
        while (right_ && stages_[s].applied < steps_ &&
               stages_[s].place < programs_[s].instructions.size() && Advance(s)) {
          moved = true;
        }
      }
    }
    for (const SymbolicStage& stage : stages_) right_ = right_ && stage.applied == steps_;
    return right_ && frames_.empty();
  }

 private:
  bool Advance(int s) {
    SymbolicStage& stage = stages_[s];
    const Program& program = programs_[s];
    if (!Execute(s, program.instructions[stage.place], stage)) return false;
    if (++stage.place == program.instructions.size()) {
      stage.place = 0;
      // A step whose optimizer did not run exactly once by its end is wrong.
      right_ = right_ && stage.applied == ++ends_[s];
    }
    return true;
  }

  std::string Activation(int s, int m, int step) const {
    return s < 0 ? absl::StrCat("x", m, ".", step)
                 : absl::StrCat("F", s, ".", step, "(", Activation(s - 1, m, step), ")");
  }
  std::string Gradient(int s, int m, int step) const {
    const std::string above = s == shape_.stages - 1 ? "loss" : Gradient(s + 1, m, step);
    return absl::StrCat("B", s, ".", step, "(", Activation(s - 1, m, step), ",",
                        Activation(s, m, step), ",", above, ")");
  }
  bool tied() const { return shape_.tied && shape_.stages > 1; }
  std::string OwnGradients(int s, int step) const {
    std::string all;
    for (int m = 0; m < shape_.micro_batches; ++m) absl::StrAppend(&all, Gradient(s, m, step), ";");
    return all;
  }
  std::string Gradients(int s, int step) const {
    const int last = shape_.stages - 1;
    if (tied() && (s == 0 || s == last)) {
      return absl::StrCat(OwnGradients(0, step), "+", OwnGradients(last, step));
    }
    return OwnGradients(s, step);
  }
  // The tied gradient is counted by the first stage alone.
  std::string Norms(int s, const std::string& gradients, const std::string& after) const {
    const bool counts = !(tied() && s == shape_.stages - 1);
    return absl::StrCat("N", s, "(", counts ? gradients : "", ")", after);
  }
  std::string Verdict(int step) const {
    std::string norms;
    for (int s = shape_.stages - 1; s >= 0; --s) norms = Norms(s, Gradients(s, step), norms);
    return norms;
  }

  bool Take(int to, InstructionKind kind, int m, std::string* value) {
    const auto frame = frames_.find(
        absl::StrCat(static_cast<int>(kind), ">", to, " ", m, " ", stages_[to].applied));
    if (frame == frames_.end()) return false;
    *value = frame->second;
    frames_.erase(frame);
    return true;
  }
  void Put(int from, int to, InstructionKind receive, int m, const std::string& value) {
    right_ = right_ && frames_
                           .emplace(absl::StrCat(static_cast<int>(receive), ">", to, " ", m, " ",
                                                 stages_[from].applied),
                                    value)
                           .second;
  }

  bool Execute(int s, const Instruction& instruction, SymbolicStage& stage);
  void Compute(int s, const Instruction& instruction, SymbolicStage& stage);
  void Apply(int s, SymbolicStage& stage);

  const std::vector<Program>& programs_;
  const Shape shape_;
  const int steps_;
  std::vector<SymbolicStage> stages_;
  std::map<int, int> ends_;
  std::map<std::string, std::string> frames_;
  bool right_ = true;
};

// False: waits.
bool SymbolicRun::Execute(int s, const Instruction& instruction, SymbolicStage& stage) {
  const int m = instruction.micro_batch;
  const int slot = m % programs_[s].slots;
  const int last = shape_.stages - 1;
  std::string value;
  switch (instruction.kind) {
    case kRecvActivation:
      return Take(s, kRecvActivation, m, &stage.inputs[slot]);
    case kSendActivation:
      Put(s, s + 1, kRecvActivation, m, stage.outputs[slot]);
      return true;
    case kRecvGradient:
      return Take(s, kRecvGradient, m, &stage.output_gradient);
    case kSendGradient:
      Put(s, s - 1, kRecvGradient, m, stage.input_gradient);
      return true;
    case kSendTiedGradient:
      Put(s, 0, kRecvTiedGradient, 0, stage.gradients);
      return true;
    case kRecvTiedGradient:
      if (!Take(s, kRecvTiedGradient, 0, &value)) return false;
      absl::StrAppend(&stage.gradients, "+", value);
      return true;
    case kSendTiedSum:
      Put(s, last, kRecvTiedSum, 0, stage.gradients);
      return true;
    case kRecvTiedSum:
      return Take(s, kRecvTiedSum, 0, &stage.gradients);
    case kRecvNorms:
      return Take(s, kRecvNorms, 0, &stage.norms);
    case kSendNorms:
      Put(s, s - 1, kRecvNorms, 0, Norms(s, stage.gradients, stage.norms));
      return true;
    case kRecvVerdict:
      return Take(s, kRecvVerdict, 0, &stage.verdict);
    case kSendVerdict:
      Put(s, s + 1, kRecvVerdict, 0, stage.verdict);
      return true;
    default:
      Compute(s, instruction, stage);
      return true;
  }
}

void SymbolicRun::Compute(int s, const Instruction& instruction, SymbolicStage& stage) {
  const int m = instruction.micro_batch;
  const int slot = m % programs_[s].slots;
  switch (instruction.kind) {
    case kForward:
      if (s == 0) stage.inputs[slot] = Activation(-1, m, stage.applied);
      stage.outputs[slot] = absl::StrCat("F", s, ".", stage.applied, "(", stage.inputs[slot], ")");
      stage.output_gradient = stage.input_gradient = "overwritten";
      return;
    case kBackward: {
      const std::string above = s == shape_.stages - 1 ? "loss" : stage.output_gradient;
      stage.input_gradient = absl::StrCat("B", s, ".", stage.applied, "(", stage.inputs[slot], ",",
                                          stage.outputs[slot], ",", above, ")");
      absl::StrAppend(&stage.gradients, stage.input_gradient, ";");
      stage.inputs[slot] = stage.outputs[slot] = stage.output_gradient = "overwritten";
      return;
    }
    case kDecideVerdict:
      stage.verdict = Norms(s, stage.gradients, stage.norms);
      return;
    case kOptimizerStep:
      Apply(s, stage);
      return;
    default:
      right_ = false;
  }
}

void SymbolicRun::Apply(int s, SymbolicStage& stage) {
  right_ = right_ && stage.gradients == Gradients(s, stage.applied) &&
           stage.verdict == Verdict(stage.applied);
  ++stage.applied;
  stage.gradients = stage.norms = stage.verdict = "";
}

}  // namespace

bool TrainsCorrectly(const std::vector<Program>& programs, const Shape& shape, int steps) {
  return SymbolicRun(programs, shape, steps).Run();
}

}  // namespace longhaul::schedule
