#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "coordinator/core/turn.h"
#include "coordinator/plan/card_sharing.h"

namespace longhaul::coordinator {
namespace {

std::vector<std::string> Signature(const std::vector<const NodeRecord*>& nodes) {
  std::vector<std::string> signature;
  for (const NodeRecord* node : nodes) {
    signature.push_back(absl::StrCat(node->facts.profile.name, "/", node->facts.incarnation));
  }
  return signature;
}

// What the planner is to know of these nodes. Others hold some of a card that they share with one.
std::vector<NodeProfile> ProfilesOf(const State& state,
                                    const std::vector<const NodeRecord*>& nodes) {
  std::vector<NodeProfile> all;
  for (const auto& [name, node] : state.nodes) {
    if (node.session != 0) all.push_back(node.facts.profile);
  }
  ShareCardMemory(all);
  std::set<std::string> names;
  for (const NodeRecord* node : nodes) names.insert(node->facts.profile.name);
  std::vector<NodeProfile> profiles;
  for (NodeProfile& profile : all) {
    if (names.contains(profile.name)) profiles.push_back(std::move(profile));
  }
  return profiles;
}

void RequestPlanWith(Turn& turn, RunRecord& run, const std::vector<const NodeRecord*>& nodes) {
  const Epoch newest = std::max(run.epoch, run.planning_epoch);
  run.planning_epoch = {std::max(newest.term, turn.state.options.term), newest.number + 1};
  run.phase = RunPhase::kPlanning;
  PlanRequest request;
  request.spec = run.spec;
  const PlanWaiter asked = run.waiter.value_or(PlanWaiter());
  const int stages = asked.stages != 0 ? asked.stages : run.stages_requested;
  const int replicas = asked.replicas != 0 ? asked.replicas : run.replicas_requested;
  request.nodes = ProfilesOf(turn.state, nodes);
  request.links = turn.state.options.links;
  request.stages = stages != 0 ? stages : static_cast<int>(run.spec.stages);
  if (replicas != 0) request.spec.replicas = {replicas};
  request.numeric_class = NumericClassOf(run);
  turn.Do(RequestPlan{run.spec.name, run.planning_epoch, std::move(request)});
}

// Would the run fit if busy nodes were free?
void PlanAhead(Turn& turn, RunRecord& run) {
  run.planning_ahead = true;
  RequestPlanWith(turn, run, UsableNodes(turn.state, true));
}

// Every node of the plan is still free, and in it once.
bool IsUsable(Turn& turn, const Plan& plan) {
  std::set<std::string> free;
  for (const NodeRecord* node : UsableNodes(turn.state, false)) {
    free.insert(node->facts.profile.name);
  }
  LH_CHECK(!plan.stages.empty(), "the planner made a plan without stages");
  std::set<std::string> used;
  for (const StagePlacement& stage : plan.stages) {
    LH_CHECK(used.insert(stage.node).second, "the planner placed two stages on ", stage.node);
  }
  return std::includes(free.begin(), free.end(), used.begin(), used.end());
}

void Queue(Turn& turn, RunRecord& run) {
  AcceptRequest(turn, run);
  ChangeRun(turn, run, RunState::kPending, RunPhase::kWaiting,
            "waits for nodes that are busy with another run");
  turn.Answer(run.waiter->request,
              absl::StrCat("run ", run.spec.name, " waits: its nodes are busy with another run"));
  run.waiter.reset();
}

void OnAheadAnswer(Turn& turn, RunRecord& run, const absl::StatusOr<Plan>& plan) {
  run.planning_ahead = false;
  if (!plan.ok()) {
    RefusePlan(turn, run, plan.status());
  } else {
    Queue(turn, run);
  }
}

// Of workers that were drained, which come back only where somebody starts them again.
constexpr absl::Duration kQuiet = absl::Seconds(2);

// Whether the nodes from before a restart of the coordinator are still to be waited for.
bool IsGathering(const Turn& turn) {
  if (turn.now >= turn.state.gathering_until) return false;
  bool some_drained = false;
  for (const auto& [name, node] : turn.state.nodes) {
    if (node.session != 0) continue;
    if (!IsDrained(node)) return true;
    some_drained = true;
  }
  return some_drained && turn.now < turn.state.joined_at + kQuiet;
}

}  // namespace

void BeginPlanning(Turn& turn, RunRecord& run) {
  const std::vector<const NodeRecord*> free = UsableNodes(turn.state, false);
  run.planned_with = Signature(free);
  run.planning_ahead = false;
  if (free.empty()) {
    PlanAhead(turn, run);
  } else {
    RequestPlanWith(turn, run, free);
  }
}

void AcceptRequest(Turn& turn, RunRecord& run) {
  if (!run.waiter.has_value()) return;
  if (run.waiter->stages > 0) run.stages_requested = run.waiter->stages;
  if (run.waiter->replicas > 0) run.replicas_requested = run.waiter->replicas;
  run.step_is_named = run.waiter->step.has_value();
  if (run.waiter->step.has_value()) ChooseCheckpoint(turn, run, *run.waiter->step);
}

void OnPlanMade(Turn& turn, const PlanMade& event) {
  RunRecord* run = FindRun(turn.state, event.run);
  if (run == nullptr || run->phase != RunPhase::kPlanning || run->planning_epoch != event.epoch) {
    return;
  }
  if (run->planning_ahead) {
    OnAheadAnswer(turn, *run, event.plan);
    return;
  }
  const bool others_busy =
      UsableNodes(turn.state, true).size() > UsableNodes(turn.state, false).size();
  if (!event.plan.ok()) {
    if (run->waiter.has_value() && others_busy && absl::IsFailedPrecondition(event.plan.status())) {
      PlanAhead(turn, *run);
    } else {
      RefusePlan(turn, *run, event.plan.status());
    }
  } else if (IsUsable(turn, *event.plan)) {
    BeginEpoch(turn, *run, *event.plan);
  } else if (!run->waiter.has_value()) {
    run->phase = RunPhase::kWaiting;  // other nodes than it was made for are free: asked again
  } else if (UsableNodes(turn.state, true).empty()) {
    RefusePlan(turn, *run, absl::FailedPreconditionError("every worker was lost meanwhile"));
  } else {
    BeginPlanning(turn, *run);
  }
}

void PlanWaitingRuns(Turn& turn) {
  if (IsGathering(turn)) return;
  for (RunRecord* run : RunsInOrder(turn.state)) {
    if (run->phase != RunPhase::kWaiting) continue;
    const std::vector<const NodeRecord*> free = UsableNodes(turn.state, false);
    if (free.empty() && run->draining) {
      RefusePlan(turn, *run, absl::FailedPreconditionError("no other worker is free"));
    } else if (!free.empty() && Signature(free) != run->planned_with) {
      BeginPlanning(turn, *run);
    } else if (free.empty()) {
      run->planned_with.clear();
    }
  }
}

}  // namespace longhaul::coordinator
