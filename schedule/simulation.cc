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

// `send_kind` is a send of a group of `stage`.
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

double ComputeSeconds(const TimelineCosts& costs, InstructionKind kind, int group) {
  switch (kind) {
    case kForward:
      return costs.forward_seconds[group];
    case kBackward:
      return costs.backward_seconds[group];
    case kOptimizerStep:
      return At(costs.optimizer_seconds, group);
    default:
      return 0;
  }
}

// After all replicas of the stage have come to it.
double CollectiveSeconds(const TimelineCosts& costs, InstructionKind kind, int stage) {
  switch (kind) {
    case kReduceGradients:
      return At(costs.reduce_seconds, stage);
    case kBroadcastTiedSum:
      return At(costs.tied_broadcast_seconds, stage);
    default:
      return 0;
  }
}

}  // namespace

Simulation::Simulation(const std::vector<Program>& programs, const Shape& shape,
                       const TimelineCosts& costs, int steps)
    : programs_(programs),
      costs_(costs),
      steps_(steps),
      groups_(shape),
      states_(programs.size()),
      hosts_(costs.host_cores.size()) {
  timeline_.groups.resize(programs.size());
  timeline_.compute_seconds.resize(programs.size(), 0);
  timeline_.wait_seconds.resize(programs.size(), 0);
  timeline_.step_ends.resize(steps, 0);
}

const Instruction& Simulation::InstructionOf(int group) const {
  return programs_[group].instructions[states_[group].place];
}

double Simulation::ArrivalOf(int group) const {
  const Instruction& instruction = InstructionOf(group);
  const int step = states_[group].step;
  if (Info(instruction.kind).role == Role::kCollective) {
    const int stage = groups_.stage(group);
    const auto meeting = meetings_.find({stage, instruction.kind, step});
    if (meeting == meetings_.end() || meeting->second.come < groups_.replicas(stage)) return kNever;
    return meeting->second.last + CollectiveSeconds(costs_, instruction.kind, stage);
  }
  const auto arrival = arrivals_.find(
      {groups_.Peer(instruction), Info(instruction.kind).partner, step, instruction.micro_batch});
  return arrival == arrivals_.end() ? kNever : arrival->second;
}

void Simulation::SetRate(int host, double now) {
  HostState& state = hosts_[host];
  const double cores = costs_.host_cores[host];
  const bool crowded = cores > 0 && state.active_threads > cores;
  const double rate = crowded ? cores / state.active_threads : 1;
  if (rate == state.rate) return;
  for (size_t group = 0; group < states_.size(); ++group) {
    if (costs_.host[group] != host || states_[group].doing != Doing::kWorking) continue;
    double& next = states_[group].next;
    next = now + (next - now) * state.rate / rate;
  }
  state.rate = rate;
}

bool Simulation::Work(int group, double seconds, double now) {
  if (seconds == 0) return false;
  double rate = 1;
  if (!costs_.host.empty()) {
    HostState& host = hosts_[costs_.host[group]];
    host.active_threads += costs_.threads[group];
    SetRate(costs_.host[group], now);
    rate = host.rate;
  }
  states_[group].doing = Doing::kWorking;
  states_[group].next = now + seconds / rate;
  return true;
}

void Simulation::StopWork(int group, double now) {
  states_[group].doing = Doing::kBetween;
  if (costs_.host.empty()) return;
  hosts_[costs_.host[group]].active_threads -= costs_.threads[group];
  SetRate(costs_.host[group], now);
}

bool Simulation::Arrive(int group, double now) {
  GroupState& state = states_[group];
  const Instruction& instruction = InstructionOf(group);
  timeline_.wait_seconds[group] += now - state.start;
  state.doing = Doing::kBetween;
  if (Info(instruction.kind).role == Role::kCollective) return true;
  const InstructionKind sent = Info(instruction.kind).partner;
  const int peer = groups_.Peer(instruction);
  arrivals_.erase({peer, sent, state.step, instruction.micro_batch});
  return !Work(group, CostOf(costs_, sent, groups_.stage(peer)).decode, now);
}

bool Simulation::Begin(int group, double now) {
  GroupState& state = states_[group];
  const InstructionKind kind = InstructionOf(group).kind;
  state.start = now;
  switch (Info(kind).role) {
    case Role::kCollective:
      Come(group, now);
      [[fallthrough]];
    case Role::kReceive:
      state.next = ArrivalOf(group);
      if (state.next <= now) return Arrive(group, now);
      state.doing = Doing::kWaiting;
      return false;
    case Role::kSend:
      return !Work(group, CostOf(costs_, kind, groups_.stage(group)).encode, now);
    default:
      return !Work(group, ComputeSeconds(costs_, kind, group), now);
  }
}

void Simulation::Come(int group, double now) {
  const InstructionKind kind = InstructionOf(group).kind;
  const int stage = groups_.stage(group);
  Meeting& meeting = meetings_[{stage, kind, states_[group].step}];
  ++meeting.come;
  meeting.last = now;
  for (int replica = 0; replica < groups_.replicas(stage); ++replica) {
    const int other = groups_.GroupOf(stage, replica);
    if (states_[other].doing == Doing::kWaiting) states_[other].next = ArrivalOf(other);
  }
}

// The frame leaves; the group that waits for it learns when it arrives.
void Simulation::Post(int group, double now) {
  const Instruction& instruction = InstructionOf(group);
  const int peer = groups_.Peer(instruction);
  const FrameCost cost = CostOf(costs_, instruction.kind, groups_.stage(group));
  double& free = path_free_[{groups_.stage(group), groups_.stage(peer)}];
  free = std::max(free, now) + cost.transfer;
  arrivals_[{group, instruction.kind, states_[group].step, instruction.micro_batch}] =
      free + cost.latency;
  if (states_[peer].doing == Doing::kWaiting) states_[peer].next = ArrivalOf(peer);
}

void Simulation::End(int group, double now) {
  GroupState& state = states_[group];
  const Instruction& instruction = InstructionOf(group);
  const Role role = Info(instruction.kind).role;
  if (role == Role::kSend) Post(group, now);
  if (role == Role::kCompute) timeline_.compute_seconds[group] += now - state.start;
  timeline_.groups[group].push_back({instruction, state.step, state.start, now});
  ++state.place;
}

void Simulation::GoOn(int group, double now) {
  GroupState& state = states_[group];
  while (state.step < steps_) {
    if (state.place == programs_[group].instructions.size()) {
      double& step_end = timeline_.step_ends[state.step];
      step_end = std::max(step_end, now);
      state.place = 0;
      ++state.step;
    } else if (Begin(group, now)) {
      End(group, now);
    } else {
      return;
    }
  }
  state.doing = Doing::kFinished;
}

absl::StatusOr<Timeline> Simulation::Run() {
  const int groups = static_cast<int>(states_.size());
  for (int group = 0; group < groups; ++group) GoOn(group, 0);
  while (true) {
    int first = -1;
    double now = kNever;
    for (int group = 0; group < groups; ++group) {
      if (states_[group].doing == Doing::kFinished || states_[group].next >= now) continue;
      first = group;
      now = states_[group].next;
    }
    if (first < 0) break;
    bool at_end = true;
    if (states_[first].doing == Doing::kWaiting) {
      at_end = Arrive(first, now);
    } else {
      StopWork(first, now);
    }
    if (!at_end) continue;
    End(first, now);
    GoOn(first, now);
  }
  for (int group = 0; group < groups; ++group) {
    if (states_[group].doing == Doing::kFinished) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "timeline: ", groups_.Name(group), " waits for ever at ", ToText(InstructionOf(group))));
  }
  timeline_.step_seconds =
      timeline_.step_ends[steps_ - 1] - (steps_ > 1 ? timeline_.step_ends[steps_ - 2] : 0);
  return std::move(timeline_);
}

}  // namespace longhaul::schedule
