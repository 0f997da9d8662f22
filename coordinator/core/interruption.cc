#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

std::string LossText(const RunRecord& run, int stage, const NodeRecord& node) {
  return absl::StrCat(NameStage(run, stage), " was lost after step ",
                      run.progress[static_cast<size_t>(stage)].step, ": ", node.reason);
}

// Stages for which `is_missing` holds, for a message: "node n1 (stage 0), node n2 (stage 1)".
template <typename F>
std::string NameMissing(const RunRecord& run, F is_missing) {
  std::vector<std::string> names;
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    if (is_missing(run.progress[static_cast<size_t>(stage)])) {
      names.push_back(NameStage(run, stage));
    }
  }
  return absl::StrJoin(names, ", ");
}

// A stage of the run whose node has no control stream; -1: none.
int FindLostStage(const State& state, const RunRecord& run) {
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    if (SessionOf(state, run, stage) == 0 && !run.progress[static_cast<size_t>(stage)].ended) {
      return stage;
    }
  }
  return -1;
}

std::string PhaseTimeout(const State& state, const RunRecord& run) {
  switch (run.phase) {
    case RunPhase::kPreparing:
      return absl::StrCat(NameMissing(run, [](const StageProgress& p) { return !p.ready; }),
                          " did not get ready within ",
                          absl::FormatDuration(state.options.prepare_max));
    case RunPhase::kAdopting:
      return absl::StrCat(
          NameMissing(run, [](const StageProgress& p) { return !p.attached && !p.ended; }),
          " did not come back within ", absl::FormatDuration(state.options.lease),
          " of the coordinator's restart");
    default: {
      if (!run.checkpoint_problem.empty()) return run.checkpoint_problem;
      std::string missing = NameMissing(run, [](const StageProgress& p) { return !p.ended; });
      if (missing.empty()) missing = "the coordinator (its checkpoint is incomplete)";
      return absl::StrCat(missing, " did not end within ",
                          absl::FormatDuration(state.options.ending_max));
    }
  }
}

// The run leaves its nodes.
void Leave(Turn& turn, RunRecord& run, RunState state, const std::string& cause,
           const std::string& reason) {
  run.stop_requested = false;
  DropPendingShards(turn, run);
  ChangeRun(turn, run, state, RunPhase::kIdle, reason);
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    if (!run.progress[static_cast<size_t>(stage)].attached) continue;
    const uint64_t session = SessionOf(turn.state, run, stage);
    if (session != 0) turn.Do(AbortStage{session, run.spec.name, run.epoch, cause});
  }
}

void FailDiverged(Turn& turn, RunRecord& run) {
  const std::string cause = std::exchange(run.divergence_cause, "");
  run.diverged.clear();
  std::string remedy = "; start another run with a lower learning rate";
  if (run.checkpoint.has_value()) {
    absl::StrAppend(&remedy, "; its newest checkpoint is of step ", run.checkpoint->step);
  }
  Leave(turn, run, RunState::kFailed, cause, absl::StrCat(cause, remedy));
}

// Every stage sees a run diverge after the same step; the account nearest to the cause is kept.
void OnDiverged(Turn& turn, const Place& place, const StageFailed& event,
                const std::string& report) {
  RunRecord& run = *place.run;
  const int64_t order = *event.said.divergence;
  if (run.diverged.empty() || order < run.divergence) {
    run.divergence = order;
    run.divergence_cause = report;
  }
  if (run.diverged.empty()) {
    run.phase_deadline = std::min(run.phase_deadline, turn.now + turn.state.options.lease);
  }
  run.diverged.insert(place.stage);
  const bool all = static_cast<int>(run.diverged.size()) == GroupCount(run);
  if (all || order < 0) FailDiverged(turn, run);
}

}  // namespace

void Interrupt(Turn& turn, RunRecord& run, const std::string& cause, const std::string& node) {
  run.interrupted_at = turn.now;
  run.blamed_node = node;
  run.diverged.clear();
  Leave(turn, run, RunState::kInterrupted, cause, absl::StrCat(cause, ResumeHint(run)));
}

void InterruptForLostNode(Turn& turn, RunRecord& run, int stage) {
  const std::string& name = run.plan->stages[static_cast<size_t>(stage)].node;
  const NodeRecord* node = FindNode(turn.state, name);
  Interrupt(turn, run, LossText(run, stage, *node), name);
}

void OnStageFailed(Turn& turn, const StageFailed& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.stage != event.said.stage || place.progress().ended) return;
  if (FallBack(turn, place, event)) return;
  RunRecord& run = *place.run;
  const std::string report = absl::StrCat(NameStage(run, place.stage), " failed after step ",
                                          event.said.step, ": ", event.said.status.message());
  if (event.said.divergence.has_value()) return OnDiverged(turn, place, event, report);
  if (!run.diverged.empty()) {
    // It lost its peers, which have left.
    turn.Explain(report);
    return;
  }
  const int lost = run.phase == RunPhase::kAdopting ? -1 : FindLostStage(turn.state, run);
  if (lost < 0) {
    Interrupt(turn, run, report, run.plan->stages[static_cast<size_t>(place.stage)].node);
    return;
  }
  // The peers of a lost node fail for want of it.
  turn.Explain(report);
  InterruptForLostNode(turn, run, lost);
}

void BlameLostNode(Turn& turn, const NodeRecord& node) {
  const std::string& name = node.facts.profile.name;
  for (auto& [run_name, run] : turn.state.runs) {
    // A node that reported its own failure before it was lost has said more than its loss says.
    if (run.state != RunState::kInterrupted || run.phase != RunPhase::kIdle ||
        turn.now - run.interrupted_at > turn.state.options.blame_window ||
        run.blamed_node == name) {
      continue;
    }
    const NodeRecord* blamed = FindNode(turn.state, run.blamed_node);
    if (blamed == nullptr || blamed->session == 0) continue;
    for (int stage = 0; stage < GroupCount(run); ++stage) {
      if (run.plan->stages[static_cast<size_t>(stage)].node != name) continue;
      run.blamed_node = name;
      ChangeRun(turn, run, run.state, run.phase,
                absl::StrCat(LossText(run, stage, node), ResumeHint(run)));
    }
  }
}

void ExpirePhases(Turn& turn) {
  for (RunRecord* run : RunsInOrder(turn.state)) {
    if (run->step_request.has_value() && turn.now >= run->step_request->until) {
      AnswerStepRequest(turn, *run);
    }
    if (!IsActive(*run) || turn.now < run->phase_deadline) continue;
    if (!run->diverged.empty()) {
      FailDiverged(turn, *run);
      continue;
    }
    Interrupt(turn, *run, PhaseTimeout(turn.state, *run), "");
  }
}

}  // namespace longhaul::coordinator
