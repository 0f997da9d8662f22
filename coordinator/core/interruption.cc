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

}  // namespace

void Interrupt(Turn& turn, RunRecord& run, const std::string& cause, const std::string& node) {
  run.interrupted_at = turn.now;
  run.blamed_node = node;
  run.stop_requested = false;
  run.pending_shards.clear();
  ChangeRun(turn, run, RunState::kInterrupted, RunPhase::kIdle,
            absl::StrCat(cause, ResumeHint(run)));
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    if (!run.progress[static_cast<size_t>(stage)].attached) continue;
    const uint64_t session = SessionOf(turn.state, run, stage);
    if (session != 0) turn.Do(AbortStage{session, run.spec.name, run.epoch, cause});
  }
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
    if (!IsActive(*run) || turn.now < run->phase_deadline) continue;
    Interrupt(turn, *run, PhaseTimeout(turn.state, *run), "");
  }
}

}  // namespace longhaul::coordinator
