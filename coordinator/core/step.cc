#include <utility>
#include <variant>

#include "coordinator/core/core.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

struct Dispatcher {
  Turn& turn;
  void operator()(const NodeConnected& event) { OnNodeConnected(turn, event); }
  void operator()(const NodeDisconnected& event) { OnNodeDisconnected(turn, event); }
  void operator()(const NodeHeartbeat& event) { OnNodeHeartbeat(turn, event); }
  void operator()(const StagePreparing& event) { FromWorker(event, OnStagePreparing); }
  void operator()(const StageReady& event) { FromWorker(event, OnStageReady); }
  void operator()(const StepReported& event) { FromWorker(event, OnStepReported); }
  void operator()(const ShardStored& event) { FromWorker(event, OnShardStored); }
  void operator()(const ShardFailed& event) { FromWorker(event, OnShardFailed); }
  void operator()(const StageEnded& event) { FromWorker(event, OnStageEnded); }
  void operator()(const StageFailed& event) { FromWorker(event, OnStageFailed); }
  void operator()(const StartRun& event) { OnStartRun(turn, event); }
  void operator()(const StopRun& event) { OnStopRun(turn, event); }
  void operator()(const ResumeRun& event) { OnResumeRun(turn, event); }
  void operator()(const DrainNode& event) { OnDrainNode(turn, event); }
  void operator()(const PlanMade& event) { OnPlanMade(turn, event); }
  void operator()(const ManifestCommitted& event) { OnManifestCommitted(turn, event); }
  void operator()(const Tick&) {
    ExpireLeases(turn);
    ExpirePhases(turn);
  }

  template <typename E>
  void FromWorker(const E& event, void (*handle)(Turn&, const E&)) {
    // A session that is not in force was fenced or lost: what it says no longer counts.
    if (FindSession(turn.state, event.session) == nullptr) return;
    RenewLease(turn, event.session);
    handle(turn, event);
  }
};

}  // namespace

std::vector<Action> Step(State& state, const Event& event, absl::Time now) {
  Turn turn{state, now, {}};
  std::visit(Dispatcher{turn}, event);
  FinishDrains(turn);
  PlanWaitingRuns(turn);
  return std::move(turn.actions);
}

}  // namespace longhaul::coordinator
