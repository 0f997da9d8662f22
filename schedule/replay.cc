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
#include "schedule/groups.h"
#include "schedule/instruction_kind.h"
#include "schedule/replay_group.h"

namespace longhaul::schedule {
namespace {

// Sending group, kind of the send, step and micro-batch: exactly one receive consumes it.
using Frame = std::tuple<int, InstructionKind, int, int>;

class Replayer {
 public:
  // `shape` is valid and outlives the object, as do the programs.
  Replayer(const std::vector<Program>& programs, const Shape& shape, const ReplayOptions& options);

  absl::Status Run();

 private:
  // Each group's instructions are there, once, and nothing else is: then sends and receives match.
  absl::Status CheckComplete();
  absl::Status CheckCompleteGroup(int group);
  // What is wrong with the instruction by itself; empty if nothing.
  std::string Misplaced(int group, const Instruction& instruction) const;
  absl::Status Missing(int group, InstructionKind kind, int m);

  // Runs `group` until it waits or has done all steps. Counts what it executed.
  absl::Status RunGroup(int group, size_t* executed);
  // Whether the instruction can go on; otherwise *wait says for what.
  bool Ready(int group, const Instruction& instruction, std::string* wait);
  bool CollectiveReady(int group, InstructionKind kind, std::string* wait);
  void MoveFrame(int group, const Instruction& instruction);
  int Window(int group, const Instruction& instruction) const;
  absl::Status Deadlock();

  bool Has(InstructionKind kind, int group) const;
  // That the group must have `kind` for: its micro-batches, or 0 for what is done once a step.
  std::vector<int> MicroBatchesOf(InstructionKind kind, int group) const;
  bool Finished(int group) const { return step_[group] >= options_.steps; }
  absl::Status Fail(int group, absl::string_view why) const;

  const std::vector<Program>& programs_;
  const Shape& shape_;
  const ReplayOptions options_;
  const Groups groups_;
  std::vector<ReplayGroup> states_;
  std::vector<int> step_;      // by group
  std::vector<size_t> place_;  // by group: index of the next instruction
  std::set<Frame> frames_;     // sent and not yet received
  // By sending group, receiving group and kind.
  std::map<std::tuple<int, int, InstructionKind>, int> unconsumed_;
  // By stage, kind and step: the groups that have come to the collective.
  std::map<std::tuple<int, InstructionKind, int>, std::set<int>> come_;
};

Replayer::Replayer(const std::vector<Program>& programs, const Shape& shape,
                   const ReplayOptions& options)
    : programs_(programs),
      shape_(shape),
      options_(options),
      groups_(shape),
      step_(programs.size(), 0),
      place_(programs.size(), 0) {}

absl::Status Replayer::Fail(int group, absl::string_view why) const {
  const std::vector<Instruction>& instructions = programs_[group].instructions;
  const std::string what = place_[group] < instructions.size() ? ToText(instructions[place_[group]])
                                                               : std::string("end of program");
  return absl::FailedPreconditionError(
      absl::StrCat(groups_.Name(group), ", step ", step_[group] + 1, " of the replay, ", what, ": ",
                   why, "\n", Grid(programs_, place_, group)));
}

bool Replayer::Has(InstructionKind kind, int group) const {
  const int stage = groups_.stage(group);
  return options_.evaluation ? EvaluationHas(kind, stage, shape_)
                             : TrainingHas(kind, stage, groups_.replica(group), shape_);
}

std::vector<int> Replayer::MicroBatchesOf(InstructionKind kind, int group) const {
  if (!Has(kind, group)) return {};
  if (!Info(kind).per_micro_batch) return {0};
  return groups_.MicroBatches(group);
}

absl::Status Replayer::CheckComplete() {
  if (options_.steps < 1) {
    return absl::FailedPreconditionError(absl::StrCat("a replay of ", options_.steps, " steps"));
  }
  if (programs_.size() != static_cast<size_t>(groups_.count())) {
    return absl::FailedPreconditionError(absl::StrCat(programs_.size(), " programs for ",
                                                      groups_.count(), " device groups of ",
                                                      groups_.stages(), " stages"));
  }
  for (int group = 0; group < groups_.count(); ++group) {
    const Program& program = programs_[group];
    const int slots_max = std::max<int>(groups_.MicroBatches(group).size(), 1);
    if (program.stage != groups_.stage(group) || program.replica != groups_.replica(group) ||
        program.slots < 1 || program.slots > slots_max) {
      return absl::FailedPreconditionError(
          absl::StrCat("program ", group, " is of stage ", program.stage, " replica ",
                       program.replica, " with ", program.slots, " slots; it must be of ",
                       groups_.Name(group), " with 1 to ", slots_max, " slots"));
    }
    LH_RETURN_IF_ERROR(CheckCompleteGroup(group));
  }
  return absl::OkStatus();
}

std::string Replayer::Misplaced(int group, const Instruction& instruction) const {
  const int m = instruction.micro_batch;
  const int count = Info(instruction.kind).per_micro_batch ? shape_.micro_batches : 1;
  if (instruction.stage != groups_.stage(group)) {
    return absl::StrCat("it belongs to stage ", instruction.stage);
  }
  if (instruction.step_offset != 0 || instruction.weight_version != 0) {
    return "a synchronous schedule has no step offsets and no weight versions";
  }
  if (!Has(instruction.kind, group)) {
    return absl::StrCat("this ", groups_.replica(group) == 0 ? "stage" : "replica",
                        " must not have it");
  }
  if (m < 0 || m >= count) return absl::StrCat("micro-batch ", m, " is not one of the ", count);
  if (Info(instruction.kind).per_micro_batch && groups_.Owner(groups_.stage(group), m) != group) {
    return absl::StrCat("micro-batch ", m, " is taken by ",
                        groups_.Name(groups_.Owner(groups_.stage(group), m)));
  }
  return "";
}

absl::Status Replayer::CheckCompleteGroup(int group) {
  const std::vector<Instruction>& instructions = programs_[group].instructions;
  std::set<std::pair<InstructionKind, int>> seen;
  size_t& place = place_[group];
  for (; place < instructions.size(); ++place) {
    const Instruction& instruction = instructions[place];
    const std::string why = Misplaced(group, instruction);
    if (!why.empty()) return Fail(group, why);
    if (!seen.emplace(instruction.kind, instruction.micro_batch).second) {
      return Fail(group, "it is done twice");
    }
  }
  for (const KindInfo& info : AllKinds()) {
    for (const int m : MicroBatchesOf(info.kind, group)) {
      if (!seen.contains({info.kind, m})) return Missing(group, info.kind, m);
    }
  }
  place = 0;
  return absl::OkStatus();
}

absl::Status Replayer::Missing(int group, InstructionKind kind, int m) {
  const Instruction instruction{.kind = kind, .stage = groups_.stage(group), .micro_batch = m};
  const std::string text = ToText(instruction);
  switch (Info(kind).role) {
    case Role::kCompute:
      return Fail(group, absl::StrCat(text, " is forgotten"));
    case Role::kCollective:
      return Fail(group, absl::StrCat(text, " is missing: the other replicas wait for it"));
    case Role::kSend:
      return Fail(group,
                  absl::StrCat(text, " is missing: ", groups_.Name(groups_.Peer(instruction)),
                               " waits for a frame that nobody sends"));
    case Role::kReceive:
      break;
  }
  return Fail(group, absl::StrCat(text, " is missing: nobody receives the frame that ",
                                  groups_.Name(groups_.Peer(instruction)), " sends"));
}

int Replayer::Window(int group, const Instruction& instruction) const {
  if (!Info(instruction.kind).per_micro_batch) return 1;
  if (options_.window > 0) return options_.window;
  return LinkWindow(programs_, std::min(group, groups_.Peer(instruction)));
}

bool Replayer::CollectiveReady(int group, InstructionKind kind, std::string* wait) {
  const int stage = groups_.stage(group);
  std::set<int>& come = come_[{stage, kind, step_[group]}];
  come.insert(group);
  for (int replica = 0; replica < groups_.replicas(stage); ++replica) {
    if (come.contains(groups_.GroupOf(stage, replica))) continue;
    *wait = absl::StrCat("waits for replica ", replica, " to come to it");
    return false;
  }
  return true;
}

bool Replayer::Ready(int group, const Instruction& instruction, std::string* wait) {
  const KindInfo& info = Info(instruction.kind);
  if (info.role == Role::kCompute) return true;
  if (info.role == Role::kCollective) return CollectiveReady(group, info.kind, wait);
  const int peer = groups_.Peer(instruction);
  if (info.role == Role::kReceive) {
    if (frames_.contains({peer, info.partner, step_[group], instruction.micro_batch})) return true;
    *wait = absl::StrCat("waits for ", groups_.Name(peer), " to send it");
    return false;
  }
  const auto unconsumed = unconsumed_.find({group, peer, info.kind});
  if (unconsumed == unconsumed_.end() || unconsumed->second < Window(group, instruction)) {
    return true;
  }
  *wait = absl::StrCat("waits for ", groups_.Name(peer), " to receive one of ", unconsumed->second,
                       " unconsumed frames, which fill the window");
  return false;
}

void Replayer::MoveFrame(int group, const Instruction& instruction) {
  const KindInfo& info = Info(instruction.kind);
  if (info.role == Role::kSend) {
    frames_.insert({group, info.kind, step_[group], instruction.micro_batch});
    ++unconsumed_[{group, groups_.Peer(instruction), info.kind}];
  } else if (info.role == Role::kReceive) {
    const int peer = groups_.Peer(instruction);
    frames_.erase({peer, info.partner, step_[group], instruction.micro_batch});
    --unconsumed_[{peer, group, info.partner}];
  }
}

absl::Status Replayer::RunGroup(int group, size_t* executed) {
  const std::vector<Instruction>& instructions = programs_[group].instructions;
  while (!Finished(group)) {
    std::string why;
    if (place_[group] == instructions.size()) {
      why = states_[group].EndStep();
      if (!why.empty()) return Fail(group, why);
      place_[group] = 0;
      ++step_[group];
      ++*executed;
      continue;
    }
    const Instruction& instruction = instructions[place_[group]];
    std::string wait;
    if (!Ready(group, instruction, &wait)) return absl::OkStatus();
    why = states_[group].Execute(instruction);
    if (!why.empty()) return Fail(group, why);
    MoveFrame(group, instruction);
    ++place_[group];
    ++*executed;
  }
  return absl::OkStatus();
}

absl::Status Replayer::Deadlock() {
  std::string waits;
  int failing = -1;
  for (int group = 0; group < groups_.count(); ++group) {
    if (Finished(group)) continue;
    const Instruction& instruction = programs_[group].instructions[place_[group]];
    std::string wait;
    Ready(group, instruction, &wait);
    if (failing < 0) failing = group;
    absl::StrAppend(&waits, "; ", groups_.Name(group), " step ", step_[group] + 1, " ",
                    ToText(instruction), " ", wait);
  }
  return Fail(failing, absl::StrCat("deadlock", waits));
}

absl::Status Replayer::Run() {
  LH_RETURN_IF_ERROR(CheckComplete());
  for (int group = 0; group < groups_.count(); ++group) {
    states_.emplace_back(programs_[group], shape_, groups_.MicroBatches(group),
                         options_.evaluation);
  }
  while (true) {
    size_t executed = 0;
    bool finished = true;
    for (int group = 0; group < groups_.count(); ++group) {
      LH_RETURN_IF_ERROR(RunGroup(group, &executed));
      finished = finished && Finished(group);
    }
    if (finished) return absl::OkStatus();
    if (executed == 0) return Deadlock();
  }
}

}  // namespace

int LinkWindow(const std::vector<Program>& programs, int upstream_group) {
  LH_CHECK(upstream_group >= 0 && upstream_group < static_cast<int>(programs.size()), "group ",
           upstream_group, " of ", programs.size());
  return programs[upstream_group].slots;
}

absl::Status Replay(const std::vector<Program>& programs, const Shape& shape,
                    const ReplayOptions& options) {
  const absl::Status valid = CheckShape(shape, options.evaluation);
  if (!valid.ok()) return absl::FailedPreconditionError(valid.message());
  return Replayer(programs, shape, options).Run();
}

}  // namespace longhaul::schedule
