#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// Assignments are out but nothing is trained: plan again without the node.
void PlanAgain(Turn& turn, RunRecord& run, const std::string& node) {
  const std::string reason = absl::StrCat("node ", node, " is drained; is planned anew");
  run.draining = true;
  run.planned_with.clear();
  ChangeRun(turn, run, RunState::kPending, RunPhase::kWaiting, reason);
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    const uint64_t session = SessionOf(turn.state, run, stage);
    if (session != 0) turn.Do(AbortStage{session, run.spec.name, run.epoch, reason});
  }
}

}  // namespace

void OnDrainNode(Turn& turn, const DrainNode& event) {
  NodeRecord* node = FindNode(turn.state, event.node);
  if (node == nullptr) {
    turn.Refuse(event.request, absl::NotFoundError(absl::StrCat("there is no node ", event.node,
                                                                "; see: longhaul node ls")));
    return;
  }
  if (node->state == NodeState::kDraining || node->state == NodeState::kDrained) {
    turn.Answer(event.request,
                absl::StrCat("node ", event.node, " is ", NodeStateName(node->state), " already"));
    return;
  }
  node->state = NodeState::kDraining;
  node->reason = "draining, as asked";
  turn.Do(PersistNode{event.node});
  const Place place = FindPlace(turn.state, event.node);
  if (place.run == nullptr) {
    turn.Answer(event.request, absl::StrCat("node ", event.node, " is drained"));
    return;
  }
  RunRecord& run = *place.run;
  const std::string leaves = absl::StrCat("node ", event.node, " leaves run ", run.spec.name);
  // A run that is to stop anyway is not planned again.
  if (run.phase == RunPhase::kPreparing && !run.stop_requested) {
    PlanAgain(turn, run, event.node);
    turn.Answer(event.request, leaves);
    return;
  }
  if (run.phase == RunPhase::kTraining) {
    BeginEnding(turn, run,
                absl::StrCat("node ", event.node, " is drained: goes on without it after a step"));
  }
  turn.Answer(event.request, absl::StrCat(leaves, " after the current step"));
}

}  // namespace longhaul::coordinator
