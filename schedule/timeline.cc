#include "schedule/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/instruction_kind.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

// What one frame costs on its way.
struct FrameCost {
  double encode = 0;
  double transfer = 0;
  double latency = 0;
  double decode = 0;
};

double At(const std::vector<double>& values, int i) { return values.empty() ? 0 : values[i]; }

// `send_kind` is a send of `stage`.
FrameCost CostOf(const TimelineCosts& costs, InstructionKind send_kind, int stage) {
  const int down = stage;    // link to the next stage
  const int up = stage - 1;  // link to the previous stage
  switch (send_kind) {
    case kSendActivation:
      return {At(costs.activation_encode, down), costs.activation_transfer[down],
              costs.activation_latency[down], At(costs.activation_decode, down)};
    case kSendGradient:
      return {At(costs.gradient_encode, up), costs.gradient_transfer[up],
              costs.gradient_latency[up], At(costs.gradient_decode, up)};
    case kSendNorms:
      return {.latency = costs.gradient_latency[up]};
    case kSendVerdict:
      return {.latency = costs.activation_latency[down]};
    case kSendTiedGradient:
      return {.transfer = costs.tied_gradient_transfer, .latency = costs.tied_gradient_latency};
    case kSendTiedSum:
      return {.transfer = costs.tied_sum_transfer, .latency = costs.tied_sum_latency};
    default:
      return {};
  }
}

absl::Status CheckCost(absl::string_view name, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("timeline cost ", name, " is ", seconds,
                                                 "; it must be finite and not negative"));
}

absl::Status CheckCosts(absl::string_view name, const std::vector<double>& seconds, size_t count,
                        bool may_be_empty) {
  if (seconds.size() != count && !(may_be_empty && seconds.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("timeline cost ", name, " has ", seconds.size(),
                                                   " entries, ", count, " are needed"));
  }
  for (const double value : seconds) LH_RETURN_IF_ERROR(CheckCost(name, value));
  return absl::OkStatus();
}

absl::Status CheckAllCosts(const TimelineCosts& costs, size_t stages) {
  const size_t links = stages - 1;
  LH_RETURN_IF_ERROR(CheckCosts("forward_seconds", costs.forward_seconds, stages, false));
  LH_RETURN_IF_ERROR(CheckCosts("backward_seconds", costs.backward_seconds, stages, false));
  LH_RETURN_IF_ERROR(CheckCosts("optimizer_seconds", costs.optimizer_seconds, stages, true));
  LH_RETURN_IF_ERROR(CheckCosts("activation_latency", costs.activation_latency, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("activation_transfer", costs.activation_transfer, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_latency", costs.gradient_latency, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_transfer", costs.gradient_transfer, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("activation_encode", costs.activation_encode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("activation_decode", costs.activation_decode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_encode", costs.gradient_encode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_decode", costs.gradient_decode, links, true));
  LH_RETURN_IF_ERROR(CheckCost("tied_gradient_latency", costs.tied_gradient_latency));
  LH_RETURN_IF_ERROR(CheckCost("tied_gradient_transfer", costs.tied_gradient_transfer));
  LH_RETURN_IF_ERROR(CheckCost("tied_sum_latency", costs.tied_sum_latency));
  return CheckCost("tied_sum_transfer", costs.tied_sum_transfer);
}

absl::Status CheckPrograms(const std::vector<Program>& programs) {
  const int stages = static_cast<int>(programs.size());
  if (stages == 0) return absl::InvalidArgumentError("a timeline needs at least one program");
  for (int stage = 0; stage < stages; ++stage) {
    for (const Instruction& instruction : programs[stage].instructions) {
      const bool moves = Info(instruction.kind).role != Role::kCompute;
      const int peer = moves ? PeerStage(instruction.kind, stage, stages) : stage;
      if (instruction.stage != stage || peer < 0 || peer >= stages || (moves && peer == stage)) {
        return absl::InvalidArgumentError(absl::StrCat("timeline: program ", stage, " of ", stages,
                                                       " has ", ToText(instruction), " of stage ",
                                                       instruction.stage));
      }
    }
  }
  return absl::OkStatus();
}

class Simulation {
 public:
  Simulation(const std::vector<Program>& programs, const TimelineCosts& costs, int steps)
      : programs_(programs),
        costs_(costs),
        steps_(steps),
        clock_(programs.size(), 0),
        step_(programs.size(), 0),
        place_(programs.size(), 0) {
    timeline_.stages.resize(programs.size());
    timeline_.compute_seconds.resize(programs.size(), 0);
    timeline_.wait_seconds.resize(programs.size(), 0);
    timeline_.step_ends.resize(steps, 0);
  }

  absl::StatusOr<Timeline> Run();

 private:
  // Whether the stage could go on at least once.
  bool RunStage(int stage);
  // False: the frame to receive has not been sent yet.
  bool Execute(int stage, const Instruction& instruction);
  void Send(int stage, const Instruction& instruction);
  double ComputeSeconds(int stage, InstructionKind kind) const;

  const std::vector<Program>& programs_;
  const TimelineCosts& costs_;
  const int steps_;
  std::vector<double> clock_;  // by stage
  std::vector<int> step_;
  std::vector<size_t> place_;
  std::map<std::pair<int, int>, double> path_free_;  // by sending and receiving stage
  // By sending stage, kind of the send, step and micro-batch.
  std::map<std::tuple<int, InstructionKind, int, int>, double> arrivals_;
  Timeline timeline_;
};

double Simulation::ComputeSeconds(int stage, InstructionKind kind) const {
  switch (kind) {
    case kForward:
      return costs_.forward_seconds[stage];
    case kBackward:
      return costs_.backward_seconds[stage];
    case kOptimizerStep:
      return At(costs_.optimizer_seconds, stage);
    default:
      return 0;
  }
}

void Simulation::Send(int stage, const Instruction& instruction) {
  const int peer = PeerStage(instruction.kind, stage, static_cast<int>(programs_.size()));
  const FrameCost cost = CostOf(costs_, instruction.kind, stage);
  clock_[stage] += cost.encode;
  double& free = path_free_[{stage, peer}];
  free = std::max(free, clock_[stage]) + cost.transfer;
  arrivals_[{stage, instruction.kind, step_[stage], instruction.micro_batch}] = free + cost.latency;
}

bool Simulation::Execute(int stage, const Instruction& instruction) {
  const KindInfo& info = Info(instruction.kind);
  const double start = clock_[stage];
  if (info.role == Role::kReceive) {
    const int peer = PeerStage(info.kind, stage, static_cast<int>(programs_.size()));
    const auto arrival =
        arrivals_.find({peer, info.partner, step_[stage], instruction.micro_batch});
    if (arrival == arrivals_.end()) return false;
    const double arrived = std::max(start, arrival->second);
    timeline_.wait_seconds[stage] += arrived - start;
    clock_[stage] = arrived + CostOf(costs_, info.partner, peer).decode;
    arrivals_.erase(arrival);
  } else if (info.role == Role::kSend) {
    Send(stage, instruction);
  } else {
    const double seconds = ComputeSeconds(stage, info.kind);
    timeline_.compute_seconds[stage] += seconds;
    clock_[stage] += seconds;
  }
  timeline_.stages[stage].push_back({instruction, step_[stage], start, clock_[stage]});
  return true;
}

bool Simulation::RunStage(int stage) {
  const std::vector<Instruction>& instructions = programs_[stage].instructions;
  bool advanced = false;
  while (step_[stage] < steps_) {
    if (place_[stage] == instructions.size()) {
      double& step_end = timeline_.step_ends[step_[stage]];
      step_end = std::max(step_end, clock_[stage]);
      place_[stage] = 0;
      ++step_[stage];
    } else {
      if (!Execute(stage, instructions[place_[stage]])) return advanced;
      ++place_[stage];
    }
    advanced = true;
  }
  return advanced;
}

absl::StatusOr<Timeline> Simulation::Run() {
  bool advanced = true;
  while (advanced) {
    advanced = false;
    for (size_t stage = 0; stage < programs_.size(); ++stage) {
      advanced = RunStage(static_cast<int>(stage)) || advanced;
    }
  }
  for (size_t stage = 0; stage < programs_.size(); ++stage) {
    if (step_[stage] == steps_) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("timeline: stage ", stage, " waits for ever at ",
                     ToText(programs_[stage].instructions[place_[stage]])));
  }
  timeline_.step_seconds =
      timeline_.step_ends[steps_ - 1] - (steps_ > 1 ? timeline_.step_ends[steps_ - 2] : 0);
  return std::move(timeline_);
}

}  // namespace

absl::StatusOr<Timeline> Simulate(const std::vector<Program>& programs, const TimelineCosts& costs,
                                  int steps) {
  if (steps < 1) return absl::InvalidArgumentError("a timeline needs at least one step");
  LH_RETURN_IF_ERROR(CheckPrograms(programs));
  LH_RETURN_IF_ERROR(CheckAllCosts(costs, programs.size()));
  return Simulation(programs, costs, steps).Run();
}

}  // namespace longhaul::schedule
