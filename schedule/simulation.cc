#include "schedule/simulation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

constexpr double kNever = std::numeric_limits<double>::infinity();

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

double ComputeSeconds(const TimelineCosts& costs, InstructionKind kind, int stage) {
  switch (kind) {
    case kForward:
      return costs.forward_seconds[stage];
    case kBackward:
      return costs.backward_seconds[stage];
    case kOptimizerStep:
      return At(costs.optimizer_seconds, stage);
    default:
      return 0;
  }
}

}  // namespace

Simulation::Simulation(const std::vector<Program>& programs, const TimelineCosts& costs, int steps)
    : programs_(programs),
      costs_(costs),
      steps_(steps),
      stages_(programs.size()),
      hosts_(costs.host_cores.size()) {
  timeline_.stages.resize(programs.size());
  timeline_.compute_seconds.resize(programs.size(), 0);
  timeline_.wait_seconds.resize(programs.size(), 0);
  timeline_.step_ends.resize(steps, 0);
}

const Instruction& Simulation::InstructionOf(int stage) const {
  return programs_[stage].instructions[stages_[stage].place];
}

int Simulation::PeerOf(int stage) const {
  return PeerStage(InstructionOf(stage).kind, stage, static_cast<int>(programs_.size()));
}

double Simulation::ArrivalOf(int stage) const {
  const Instruction& instruction = InstructionOf(stage);
  const auto arrival = arrivals_.find({PeerOf(stage), Info(instruction.kind).partner,
                                       stages_[stage].step, instruction.micro_batch});
  return arrival == arrivals_.end() ? kNever : arrival->second;
}

void Simulation::SetRate(int host, double now) {
  HostState& state = hosts_[host];
  const double cores = costs_.host_cores[host];
  const bool crowded = cores > 0 && state.active_threads > cores;
  const double rate = crowded ? cores / state.active_threads : 1;
  if (rate == state.rate) return;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    if (costs_.host[stage] != host || stages_[stage].doing != Doing::kWorking) continue;
    double& next = stages_[stage].next;
    next = now + (next - now) * state.rate / rate;
  }
  state.rate = rate;
}

bool Simulation::Work(int stage, double seconds, double now) {
  if (seconds == 0) return false;
  double rate = 1;
  if (!costs_.host.empty()) {
    HostState& host = hosts_[costs_.host[stage]];
    host.active_threads += costs_.threads[stage];
    SetRate(costs_.host[stage], now);
    rate = host.rate;
  }
  stages_[stage].doing = Doing::kWorking;
  stages_[stage].next = now + seconds / rate;
  return true;
}

void Simulation::StopWork(int stage, double now) {
  stages_[stage].doing = Doing::kBetween;
  if (costs_.host.empty()) return;
  hosts_[costs_.host[stage]].active_threads -= costs_.threads[stage];
  SetRate(costs_.host[stage], now);
}

bool Simulation::Arrive(int stage, double now) {
  StageState& state = stages_[stage];
  const Instruction& instruction = InstructionOf(stage);
  const InstructionKind sent = Info(instruction.kind).partner;
  timeline_.wait_seconds[stage] += now - state.start;
  arrivals_.erase({PeerOf(stage), sent, state.step, instruction.micro_batch});
  state.doing = Doing::kBetween;
  return !Work(stage, CostOf(costs_, sent, PeerOf(stage)).decode, now);
}

bool Simulation::Begin(int stage, double now) {
  StageState& state = stages_[stage];
  const InstructionKind kind = InstructionOf(stage).kind;
  state.start = now;
  switch (Info(kind).role) {
    case Role::kReceive:
      state.next = ArrivalOf(stage);
      if (state.next <= now) return Arrive(stage, now);
      state.doing = Doing::kWaiting;
      return false;
    case Role::kSend:
      return !Work(stage, CostOf(costs_, kind, stage).encode, now);
    default:
      return !Work(stage, ComputeSeconds(costs_, kind, stage), now);
  }
}

// The frame leaves; the stage that waits for it learns when it arrives.
void Simulation::Post(int stage, double now) {
  const Instruction& instruction = InstructionOf(stage);
  const int peer = PeerOf(stage);
  const FrameCost cost = CostOf(costs_, instruction.kind, stage);
  double& free = path_free_[{stage, peer}];
  free = std::max(free, now) + cost.transfer;
  arrivals_[{stage, instruction.kind, stages_[stage].step, instruction.micro_batch}] =
      free + cost.latency;
  if (stages_[peer].doing == Doing::kWaiting) stages_[peer].next = ArrivalOf(peer);
}

void Simulation::End(int stage, double now) {
  StageState& state = stages_[stage];
  const Instruction& instruction = InstructionOf(stage);
  const Role role = Info(instruction.kind).role;
  if (role == Role::kSend) Post(stage, now);
  if (role == Role::kCompute) timeline_.compute_seconds[stage] += now - state.start;
  timeline_.stages[stage].push_back({instruction, state.step, state.start, now});
  ++state.place;
}

void Simulation::GoOn(int stage, double now) {
  StageState& state = stages_[stage];
  while (state.step < steps_) {
    if (state.place == programs_[stage].instructions.size()) {
      double& step_end = timeline_.step_ends[state.step];
      step_end = std::max(step_end, now);
      state.place = 0;
      ++state.step;
    } else if (Begin(stage, now)) {
      End(stage, now);
    } else {
      return;
    }
  }
  state.doing = Doing::kFinished;
}

absl::StatusOr<Timeline> Simulation::Run() {
  const int stages = static_cast<int>(stages_.size());
  for (int stage = 0; stage < stages; ++stage) GoOn(stage, 0);
  while (true) {
    int first = -1;
    double now = kNever;
    for (int stage = 0; stage < stages; ++stage) {
      if (stages_[stage].doing == Doing::kFinished || stages_[stage].next >= now) continue;
      first = stage;
      now = stages_[stage].next;
    }
    if (first < 0) break;
    bool at_end = true;
    if (stages_[first].doing == Doing::kWaiting) {
      at_end = Arrive(first, now);
    } else {
      StopWork(first, now);
    }
    if (!at_end) continue;
    End(first, now);
    GoOn(first, now);
  }
  for (int stage = 0; stage < stages; ++stage) {
    if (stages_[stage].doing == Doing::kFinished) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "timeline: stage ", stage, " waits for ever at ", ToText(InstructionOf(stage))));
  }
  timeline_.step_seconds =
      timeline_.step_ends[steps_ - 1] - (steps_ > 1 ? timeline_.step_ends[steps_ - 2] : 0);
  return std::move(timeline_);
}

}  // namespace longhaul::schedule
