#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// Why a run stops whose nodes were drained and which the others cannot go on with.
std::string DrainedText(const State& state, const RunRecord& run, const std::string& why) {
  std::vector<std::string> drained;
  bool some_left = false;
  for (const auto& [name, node] : state.nodes) {
    if (IsDrained(node)) {
      drained.push_back(name);
    } else {
      some_left = some_left || node.state == NodeState::kConnected;
    }
  }
  const std::string resume_point = ResumePoint(run);
  if (!some_left) {
    return absl::StrCat("the cluster was stopped: every worker was drained as asked (",
                        absl::StrJoin(drained, ", "), "); it goes on from ", resume_point);
  }
  return absl::StrCat(NameDrained(state, run), " left the run, drained as asked, and the others ",
                      "cannot run it: ", why, "; it goes on from ", resume_point);
}

}  // namespace

void RefuseRequest(Turn& turn, RunRecord& run, const absl::Status& refusal) {
  const PlanWaiter waiter = *std::exchange(run.waiter, std::nullopt);
  turn.Refuse(waiter.request, refusal);
  turn.Explain(absl::StrCat("run ", run.spec.name, " was not ",
                            waiter.is_start ? "started: " : "resumed: ", refusal.message()));
  if (waiter.is_start) {
    const std::string name = run.spec.name;
    turn.state.runs.erase(name);
    return;
  }
  run.phase = RunPhase::kIdle;
}

void RefusePlan(Turn& turn, RunRecord& run, const absl::Status& refusal) {
  const std::string why(refusal.message());
  if (run.waiter.has_value()) {
    RefuseRequest(turn, run, refusal);
  } else if (run.draining) {
    run.draining = false;
    ChangeRun(turn, run, RunState::kStopped, RunPhase::kIdle,
              absl::StrCat(DrainedText(turn.state, run, why), ResumeHint(run)));
  } else if (absl::IsFailedPrecondition(refusal)) {
    ChangeRun(turn, run, RunState::kPending, RunPhase::kWaiting,
              absl::StrCat("waits for workers: ", why));
  } else {
    ChangeRun(turn, run, RunState::kFailed, RunPhase::kIdle,
              absl::StrCat("it cannot be planned: ", why));
  }
}

}  // namespace longhaul::coordinator
