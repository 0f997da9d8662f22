#include "schedule/testing/symbolic_run.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

struct SymbolicGroup {
  std::map<int, std::string> inputs, outputs;  // by slot
  std::string output_gradient, input_gradient;
  std::string gradients, tied_gradient, norms, verdict;
  std::map<int, std::string> losses;  // of its own micro-batches
  std::string reduced_losses;
  int applied = 0;
  size_t place = 0;
};

class SymbolicRun {
 public:
  SymbolicRun(const std::vector<Program>& programs, const Shape& shape, int steps)
      : programs_(programs), shape_(shape), steps_(steps), groups_(programs.size()) {
    for (size_t g = 0; g < programs.size(); ++g) {
      of_stage_[programs[g].stage].push_back(g);
      int position = 0;
      for (int m = 0; m < shape.micro_batches; ++m) {
        if (Owner(programs[g].stage, m) != programs[g].replica) continue;
        slots_[{g, m}] = position++ % programs[g].slots;
      }
    }
  }

  bool Run() {
    bool moved = true;
    while (moved && right_) {
      moved = false;
      for (size_t g = 0; g < programs_.size(); ++g) {
        while (right_ && groups_[g].applied < steps_ &&
               groups_[g].place < programs_[g].instructions.size() && Advance(g)) {
          moved = true;
        }
      }
    }
    for (const SymbolicGroup& group : groups_) right_ = right_ && group.applied == steps_;
    return right_ && frames_.empty();
  }

 private:
  bool Advance(size_t g) {
    SymbolicGroup& group = groups_[g];
    const Program& program = programs_[g];
    if (!Execute(g, program.instructions[group.place], group)) return false;
    if (++group.place == program.instructions.size()) {
      group.place = 0;
      // A step whose optimizer did not run exactly once by its end is wrong.
      right_ = right_ && group.applied == ++ends_[g];
    }
    return true;
  }

  int Owner(int s, int m) const { return shape_.owners.empty() ? 0 : shape_.owners[s][m]; }
  size_t GroupOf(int s, int m) { return of_stage_[s][Owner(s, m)]; }
  int SlotOf(size_t g, int m) { return slots_.at({g, m}); }

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
    for (int r = 0; r < static_cast<int>(of_stage_.at(s).size()); ++r) {
      if (r > 0) absl::StrAppend(&all, "|");
      for (int m = 0; m < shape_.micro_batches; ++m) {
        if (Owner(s, m) == r) absl::StrAppend(&all, Gradient(s, m, step), ";");
      }
    }
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

  bool Take(size_t to, InstructionKind kind, int m, std::string* value) {
    const auto frame = frames_.find({to, kind, m, groups_[to].applied});
    if (frame == frames_.end()) return false;
    *value = frame->second;
    frames_.erase(frame);
    return true;
  }
  void Put(size_t from, size_t to, InstructionKind receive, int m, const std::string& value) {
    right_ = right_ && frames_.emplace(Frame{to, receive, m, groups_[from].applied}, value).second;
  }

  // Each replica leaves what it has and goes on when all have; *all is what they left, in order.
  bool Meet(size_t g, InstructionKind kind, const std::string& mine,
            std::vector<std::string>* all) {
    std::map<size_t, std::string>& left = meetings_[{programs_[g].stage, kind, groups_[g].applied}];
    left.emplace(g, mine);
    for (const size_t other : of_stage_[programs_[g].stage]) {
      const auto its = left.find(other);
      if (its == left.end()) return false;
      all->push_back(its->second);
    }
    return true;
  }
  // The last stage's, where they are reduced.
  std::string Losses(int s, int step) const;
  bool MeetFor(size_t g, InstructionKind kind, SymbolicGroup& group);

  bool Execute(size_t g, const Instruction& instruction, SymbolicGroup& group);
  void Compute(size_t g, const Instruction& instruction, SymbolicGroup& group);
  void Apply(int s, SymbolicGroup& group);

  using Frame =
      std::tuple<size_t, InstructionKind, int, int>;  // to, as received, micro-batch, step

  const std::vector<Program>& programs_;
  const Shape shape_;
  const int steps_;
  std::vector<SymbolicGroup> groups_;
  std::map<int, std::vector<size_t>> of_stage_;
  std::map<std::pair<size_t, int>, int> slots_;  // of a group's micro-batch
  std::map<size_t, int> ends_;
  std::map<Frame, std::string> frames_;
  std::map<std::tuple<int, InstructionKind, int>, std::map<size_t, std::string>> meetings_;
  bool right_ = true;
};

bool SymbolicRun::MeetFor(size_t g, InstructionKind kind, SymbolicGroup& group) {
  std::vector<std::string> all;
  switch (kind) {
    case kReduceGradients:
      if (!Meet(g, kind, group.gradients, &all)) return false;
      group.gradients = absl::StrJoin(all, "|");
      return true;
    case kReduceLosses: {
      std::string losses;
      for (const auto& [m, loss] : group.losses) absl::StrAppend(&losses, m, ":", loss, ";");
      if (!Meet(g, kind, losses, &all)) return false;
      group.reduced_losses = absl::StrJoin(all, "|");
      return true;
    }
    case kBroadcastTiedSum:
      if (!Meet(g, kind, group.gradients, &all)) return false;
      group.gradients = all.front();
      return true;
    default:
      if (!Meet(g, kind, group.verdict, &all)) return false;
      group.verdict = all.front();
      return true;
  }
}

// False: waits.
bool SymbolicRun::Execute(size_t g, const Instruction& instruction, SymbolicGroup& group) {
  const int m = instruction.micro_batch;
  const int s = programs_[g].stage;
  const int last = shape_.stages - 1;
  std::string value;
  switch (instruction.kind) {
    case kRecvActivation:
      return Take(g, kRecvActivation, m, &group.inputs[SlotOf(g, m)]);
    case kSendActivation:
      Put(g, GroupOf(s + 1, m), kRecvActivation, m, group.outputs[SlotOf(g, m)]);
      return true;
    case kRecvGradient:
      return Take(g, kRecvGradient, m, &group.output_gradient);
    case kSendGradient:
      Put(g, GroupOf(s - 1, m), kRecvGradient, m, group.input_gradient);
      return true;
    case kSendTiedGradient:
      Put(g, of_stage_[0][0], kRecvTiedGradient, 0, group.gradients);
      return true;
    case kRecvTiedGradient:
      if (!Take(g, kRecvTiedGradient, 0, &value)) return false;
      absl::StrAppend(&group.gradients, "+", value);
      return true;
    case kSendTiedSum:
      Put(g, of_stage_[last][0], kRecvTiedSum, 0, group.gradients);
      return true;
    case kRecvTiedSum:
      return Take(g, kRecvTiedSum, 0, &group.gradients);
    case kRecvNorms:
      return Take(g, kRecvNorms, 0, &group.norms);
    case kSendNorms:
      Put(g, of_stage_[s - 1][0], kRecvNorms, 0, Norms(s, group.gradients, group.norms));
      return true;
    case kRecvVerdict:
      return Take(g, kRecvVerdict, 0, &group.verdict);
    case kSendVerdict:
      Put(g, of_stage_[s + 1][0], kRecvVerdict, 0, group.verdict);
      return true;
    case kReduceGradients:
    case kReduceLosses:
    case kBroadcastTiedSum:
    case kBroadcastVerdict:
      return MeetFor(g, instruction.kind, group);
    default:
      Compute(g, instruction, group);
      return true;
  }
}

void SymbolicRun::Compute(size_t g, const Instruction& instruction, SymbolicGroup& group) {
  const int m = instruction.micro_batch;
  const int s = programs_[g].stage;
  switch (instruction.kind) {
    case kForward: {
      const int slot = SlotOf(g, m);
      if (s == 0) group.inputs[slot] = Activation(-1, m, group.applied);
      group.outputs[slot] = absl::StrCat("F", s, ".", group.applied, "(", group.inputs[slot], ")");
      group.output_gradient = group.input_gradient = "overwritten";
      group.losses[m] = group.outputs[slot];
      return;
    }
    case kBackward: {
      const int slot = SlotOf(g, m);
      const std::string above = s == shape_.stages - 1 ? "loss" : group.output_gradient;
      group.input_gradient = absl::StrCat("B", s, ".", group.applied, "(", group.inputs[slot], ",",
                                          group.outputs[slot], ",", above, ")");
      absl::StrAppend(&group.gradients, group.input_gradient, ";");
      group.inputs[slot] = group.outputs[slot] = group.output_gradient = "overwritten";
      return;
    }
    case kDecideVerdict:
      group.verdict = Norms(s, group.gradients, group.norms);
      return;
    case kOptimizerStep:
      Apply(s, group);
      return;
    default:
      right_ = false;
  }
}

std::string SymbolicRun::Losses(int s, int step) const {
  const int replicas = static_cast<int>(of_stage_.at(s).size());
  if (s < shape_.stages - 1 || replicas == 1) return "";
  std::vector<std::string> all(replicas);
  for (int m = 0; m < shape_.micro_batches; ++m) {
    absl::StrAppend(&all[Owner(s, m)], m, ":", Activation(s, m, step), ";");
  }
  return absl::StrJoin(all, "|");
}

void SymbolicRun::Apply(int s, SymbolicGroup& group) {
  right_ = right_ && group.gradients == Gradients(s, group.applied) &&
           group.verdict == Verdict(group.applied) &&
           group.reduced_losses == Losses(s, group.applied);
  ++group.applied;
  group.gradients = group.norms = group.verdict = group.reduced_losses = "";
  group.losses.clear();
}

}  // namespace

bool TrainsCorrectly(const std::vector<Program>& programs, const Shape& shape, int steps) {
  return SymbolicRun(programs, shape, steps).Run();
}

}  // namespace longhaul::schedule
