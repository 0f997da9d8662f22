#include "schedule/replay.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "schedule/grid.h"
#include "schedule/instruction_kind.h"
#include "schedule/replay_stage.h"

namespace longhaul::schedule {
namespace {

// Sending stage, kind of the send, step and micro-batch: exactly one receive consumes it.
using Frame = std::tuple<int, InstructionKind, int, int>;

class Replayer {
 public:
  Replayer(const std::vector<Program>& programs, const Shape& shape, const ReplayOptions& options);

  absl::Status Run();

 private:
  // Each stage's instructions are there, once, and nothing else is: then sends and receives match.
  absl::Status CheckComplete();
  absl::Status CheckCompleteStage(int stage);
  absl::Status Missing(int stage, InstructionKind kind, int m);

  // Runs `stage` until it waits or has done all steps. Counts what it executed.
  absl::Status RunStage(int stage, size_t* executed);
  // Whether the instruction can go on; otherwise *wait says for what.
  bool Ready(int stage, const Instruction& instruction, std::string* wait) const;
  void MoveFrame(int stage, const Instruction& instruction);
  int Window(int stage, InstructionKind kind) const;
  absl::Status Deadlock();

  bool Has(InstructionKind kind, int stage) const;
  bool Finished(int stage) const { return step_[stage] >= options_.steps; }
  absl::Status Fail(int stage, absl::string_view why) const;

  const std::vector<Program>& programs_;
  const Shape shape_;
  const ReplayOptions options_;
  std::vector<ReplayStage> stages_;
  std::vector<int> step_;      // by stage
  std::vector<size_t> place_;  // by stage: index of the next instruction
  std::set<Frame> frames_;     // sent and not yet received
  std::map<std::pair<int, InstructionKind>, int> unconsumed_;  // by sending stage and kind
};

Replayer::Replayer(const std::vector<Program>& programs, const Shape& shape,
                   const ReplayOptions& options)
    : programs_(programs),
      shape_(shape),
      options_(options),
      step_(programs.size(), 0),
      place_(programs.size(), 0) {}

absl::Status Replayer::Fail(int stage, absl::string_view why) const {
  const std::vector<Instruction>& instructions = programs_[stage].instructions;
  const std::string what = place_[stage] < instructions.size() ? ToText(instructions[place_[stage]])
                                                               : std::string("end of program");
  return absl::FailedPreconditionError(absl::StrCat("stage ", stage, ", step ", step_[stage] + 1,
                                                    " of the replay, ", what, ": ", why, "\n",
                                                    Grid(programs_, place_, stage)));
}

bool Replayer::Has(InstructionKind kind, int stage) const {
  return options_.evaluation ? EvaluationHas(kind, stage, shape_.stages)
                             : TrainingHas(kind, stage, shape_);
}

absl::Status Replayer::CheckComplete() {
  const int micro_batches_min = options_.evaluation ? 0 : 1;
  if (shape_.stages < 1 || shape_.micro_batches < micro_batches_min || options_.steps < 1) {
    return absl::FailedPreconditionError(absl::StrCat("a replay of ", shape_.stages, " stages, ",
                                                      shape_.micro_batches, " micro-batches and ",
                                                      options_.steps, " steps"));
  }
  if (programs_.size() != static_cast<size_t>(shape_.stages)) {
    return absl::FailedPreconditionError(
        absl::StrCat(programs_.size(), " programs for ", shape_.stages, " stages"));
  }
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const Program& program = programs_[stage];
    if (program.stage != stage || program.slots < 1 ||
        program.slots > std::max(shape_.micro_batches, 1)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "program ", stage, " is of stage ", program.stage, " with ", program.slots,
          " slots; it must be of stage ", stage, " with 1 to ", shape_.micro_batches, " slots"));
    }
    LH_RETURN_IF_ERROR(CheckCompleteStage(stage));
  }
  return absl::OkStatus();
}

absl::Status Replayer::CheckCompleteStage(int stage) {
  const std::vector<Instruction>& instructions = programs_[stage].instructions;
  std::set<std::pair<InstructionKind, int>> seen;
  size_t& place = place_[stage];
  for (; place < instructions.size(); ++place) {
    const Instruction& instruction = instructions[place];
    const int m = instruction.micro_batch;
    const int count = Info(instruction.kind).per_micro_batch ? shape_.micro_batches : 1;
    if (instruction.stage != stage) {
      return Fail(stage, absl::StrCat("it belongs to stage ", instruction.stage));
    }
    if (instruction.step_offset != 0 || instruction.weight_version != 0) {
      return Fail(stage, "a synchronous schedule has no step offsets and no weight versions");
    }
    if (!Has(instruction.kind, stage)) return Fail(stage, "this stage must not have it");
    if (m < 0 || m >= count) {
      return Fail(stage, absl::StrCat("micro-batch ", m, " is not one of the ", count));
    }
    if (!seen.emplace(instruction.kind, m).second) return Fail(stage, "it is done twice");
  }
  for (const KindInfo& info : AllKinds()) {
    if (!Has(info.kind, stage)) continue;
    for (int m = 0; m < (info.per_micro_batch ? shape_.micro_batches : 1); ++m) {
      if (!seen.contains({info.kind, m})) return Missing(stage, info.kind, m);
    }
  }
  place = 0;
  return absl::OkStatus();
}

absl::Status Replayer::Missing(int stage, InstructionKind kind, int m) {
  const std::string text = ToText(Instruction{.kind = kind, .stage = stage, .micro_batch = m});
  switch (Info(kind).role) {
    case Role::kCompute:
      return Fail(stage, absl::StrCat(text, " is forgotten"));
    case Role::kSend:
      return Fail(stage,
                  absl::StrCat(text, " is missing: stage ", PeerStage(kind, stage, shape_.stages),
                               " waits for a frame that nobody sends"));
    case Role::kReceive:
      break;
  }
  return Fail(stage, absl::StrCat(text, " is missing: nobody receives the frame that stage ",
                                  PeerStage(kind, stage, shape_.stages), " sends"));
}

int Replayer::Window(int stage, InstructionKind kind) const {
  if (!Info(kind).per_micro_batch) return 1;
  if (options_.window > 0) return options_.window;
  return LinkWindow(programs_, std::min(stage, PeerStage(kind, stage, shape_.stages)));
}

bool Replayer::Ready(int stage, const Instruction& instruction, std::string* wait) const {
  const KindInfo& info = Info(instruction.kind);
  if (info.role == Role::kCompute) return true;
  const int peer = PeerStage(info.kind, stage, shape_.stages);
  if (info.role == Role::kReceive) {
    if (frames_.contains({peer, info.partner, step_[stage], instruction.micro_batch})) return true;
    *wait = absl::StrCat("waits for stage ", peer, " to send it");
    return false;
  }
  const auto unconsumed = unconsumed_.find({stage, info.kind});
  if (unconsumed == unconsumed_.end() || unconsumed->second < Window(stage, info.kind)) return true;
  *wait = absl::StrCat("waits for stage ", peer, " to receive one of ", unconsumed->second,
                       " unconsumed frames, which fill the window");
  return false;
}

void Replayer::MoveFrame(int stage, const Instruction& instruction) {
  const KindInfo& info = Info(instruction.kind);
  if (info.role == Role::kSend) {
    frames_.insert({stage, info.kind, step_[stage], instruction.micro_batch});
    ++unconsumed_[{stage, info.kind}];
  } else if (info.role == Role::kReceive) {
    const int peer = PeerStage(info.kind, stage, shape_.stages);
    frames_.erase({peer, info.partner, step_[stage], instruction.micro_batch});
    --unconsumed_[{peer, info.partner}];
  }
}

absl::Status Replayer::RunStage(int stage, size_t* executed) {
  const std::vector<Instruction>& instructions = programs_[stage].instructions;
  while (!Finished(stage)) {
    std::string why;
    if (place_[stage] == instructions.size()) {
      why = stages_[stage].EndStep();
      if (!why.empty()) return Fail(stage, why);
      place_[stage] = 0;
      ++step_[stage];
      ++*executed;
      continue;
    }
    const Instruction& instruction = instructions[place_[stage]];
    std::string wait;
    if (!Ready(stage, instruction, &wait)) return absl::OkStatus();
    why = stages_[stage].Execute(instruction);
    if (!why.empty()) return Fail(stage, why);
    MoveFrame(stage, instruction);
    ++place_[stage];
    ++*executed;
  }
  return absl::OkStatus();
}

absl::Status Replayer::Deadlock() {
  std::string waits;
  int failing = -1;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    if (Finished(stage)) continue;
    const Instruction& instruction = programs_[stage].instructions[place_[stage]];
    std::string wait;
    Ready(stage, instruction, &wait);
    if (failing < 0) failing = stage;
    absl::StrAppend(&waits, "; stage ", stage, " step ", step_[stage] + 1, " ", ToText(instruction),
                    " ", wait);
  }
  return Fail(failing, absl::StrCat("deadlock", waits));
}

absl::Status Replayer::Run() {
  LH_RETURN_IF_ERROR(CheckComplete());
  for (const Program& program : programs_) {
    stages_.emplace_back(program, shape_, options_.evaluation);
  }
  while (true) {
    size_t executed = 0;
    bool finished = true;
    for (int stage = 0; stage < shape_.stages; ++stage) {
      LH_RETURN_IF_ERROR(RunStage(stage, &executed));
      finished = finished && Finished(stage);
    }
    if (finished) return absl::OkStatus();
    if (executed == 0) return Deadlock();
  }
}

}  // namespace

int LinkWindow(const std::vector<Program>& programs, int upstream_stage) {
  LH_CHECK(upstream_stage >= 0 && upstream_stage < static_cast<int>(programs.size()), "stage ",
           upstream_stage, " of ", programs.size());
  return programs[upstream_stage].slots;
}

absl::Status Replay(const std::vector<Program>& programs, const Shape& shape,
                    const ReplayOptions& options) {
  return Replayer(programs, shape, options).Run();
}

}  // namespace longhaul::schedule
