#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// What the plan of the newest epoch shows of its stages, and what is known of their steps.
void ResetProgress(RunRecord& run) {
  const std::vector<StageProgress> known = std::exchange(run.progress, {});
  run.progress.assign(run.plan->stages.size(), StageProgress{.step = run.start_step});
  for (size_t stage = 0; stage < std::min(known.size(), run.progress.size()); ++stage) {
    int64_t& step = run.progress[stage].step;
    step = std::max(step, std::min(known[stage].step, run.spec.train.steps));
  }
}

// A run that was running has to be found again among the workers.
void Adopt(RunRecord& run, absl::Time deadline) {
  if (!run.plan.has_value() || run.plan->stages.empty()) {
    run.state = RunState::kInterrupted;
    run.phase = RunPhase::kIdle;
    run.reason = absl::StrCat("its stored record has no plan", ResumeHint(run));
    return;
  }
  run.phase = RunPhase::kAdopting;
  run.phase_deadline = deadline;
  ResetProgress(run);
}

}  // namespace

State Restore(CoreOptions options, std::vector<NodeRecord> nodes, std::vector<RunRecord> runs,
              absl::Time now) {
  State state;
  state.options = std::move(options);
  for (NodeRecord& node : nodes) {
    node.session = 0;
    if (node.state == NodeState::kConnected || node.state == NodeState::kLost) {
      node.state = NodeState::kLost;
      node.reason = "not seen since the coordinator's start";
    }
    std::string name = node.facts.profile.name;
    state.nodes[std::move(name)] = std::move(node);
  }
  for (RunRecord& run : runs) {
    if (run.state == RunState::kRunning) {
      Adopt(run, now + state.options.lease);
    } else {
      const bool waits = run.state == RunState::kPending;
      run.phase = waits ? RunPhase::kWaiting : RunPhase::kIdle;
      if (waits) state.gathering_until = now + state.options.lease;
      if (run.plan.has_value()) ResetProgress(run);
    }
    state.next_run_sequence = std::max(state.next_run_sequence, run.sequence + 1);
    std::string name = run.spec.name;
    state.runs[std::move(name)] = std::move(run);
  }
  return state;
}

}  // namespace longhaul::coordinator
