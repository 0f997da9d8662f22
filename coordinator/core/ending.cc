#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

void Release(Turn& turn, const RunRecord& run) {
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    const uint64_t session = SessionOf(turn.state, run, stage);
    const StageProgress& progress = run.progress[static_cast<size_t>(stage)];
    // A worker that came back as a new process holds nothing.
    if (session != 0 && progress.attached) {
      turn.Do(ReleaseStage{session, run.spec.name, run.epoch});
    }
  }
}

// All stages ended at `step` and its checkpoint is committed.
void Finish(Turn& turn, RunRecord& run, int64_t step) {
  const bool stopped = run.stop_requested;
  run.stop_requested = false;
  if (step >= run.spec.train.steps) {
    ChangeRun(turn, run, RunState::kDone, RunPhase::kIdle,
              absl::StrCat("all ", step, " steps are done"));
  } else if (stopped) {
    ChangeRun(turn, run, RunState::kStopped, RunPhase::kIdle,
              absl::StrCat("stopped as asked after step ", step, ResumeHint(run)));
  } else if (HasDrainingNode(turn.state, run)) {
    run.draining = true;
    run.planned_with.clear();
    ChangeRun(turn, run, RunState::kPending, RunPhase::kWaiting,
              absl::StrCat("goes on after step ", step, " without ", NameDrained(turn.state, run),
                           ", drained as asked"));
  } else {
    ChangeRun(
        turn, run, RunState::kInterrupted, RunPhase::kIdle,
        absl::StrCat("its stages ended after step ", step, " without being told", ResumeHint(run)));
  }
  Release(turn, run);
}

bool IsSaved(const RunRecord& run, int64_t step) {
  if (run.checkpoint.has_value()) return run.checkpoint->step == step;
  return step == 0 && run.commits.empty();  // nothing was trained: the initial weights
}

// The step at which every stage has ended or failed to store its shard, if one did fail.
std::optional<int64_t> FindFailedEnd(const RunRecord& run) {
  std::optional<int64_t> end;
  bool some_failed = false;
  for (const StageProgress& progress : run.progress) {
    const int64_t step = progress.ended ? progress.ended_step : progress.failed_step;
    if (end.value_or(step) != step) return std::nullopt;
    end = step;
    some_failed = some_failed || !progress.ended;
  }
  if (!some_failed || end.value_or(-1) < 0) return std::nullopt;
  return end;
}

// Stages that cannot store their last shards have nothing more to say: the run must not wait for
// them. Returns whether it was interrupted.
bool InterruptFailedEnd(Turn& turn, RunRecord& run) {
  const std::optional<int64_t> end = FindFailedEnd(run);
  if (!end.has_value()) return false;
  const bool some_ended = std::any_of(run.progress.begin(), run.progress.end(),
                                      [](const StageProgress& p) { return p.ended; });
  if (some_ended || *end == run.spec.train.steps) {
    Interrupt(turn, run, run.checkpoint_problem, "");
    return true;
  }
  const bool may_go_on = std::any_of(run.progress.begin(), run.progress.end(),
                                     [&](const StageProgress& p) { return p.step > *end; });
  if (run.phase == RunPhase::kEnding && !may_go_on) {
    // It may have been a checkpoint in passing, just before the step that the stop comes after.
    run.phase_deadline = std::min(run.phase_deadline, turn.now + turn.state.options.lease);
  }
  return false;
}

}  // namespace

void SendStop(Turn& turn, const RunRecord& run) {
  const uint64_t session = SessionOf(turn.state, run, 0);
  const bool wanted = run.stop_requested || HasDrainingNode(turn.state, run);
  if (wanted && session != 0 && !run.progress[0].ended) {
    turn.Do(RequestStop{session, run.spec.name, run.epoch});
  }
}

void BeginEnding(Turn& turn, RunRecord& run, std::string reason) {
  ChangeRun(turn, run, run.state, RunPhase::kEnding, std::move(reason));
  run.phase_deadline = turn.now + turn.state.options.ending_max;
  SendStop(turn, run);
}

void OnStageEnded(Turn& turn, const StageEnded& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.stage != event.said.stage) return;
  RunRecord& run = *place.run;
  if (event.said.step < run.start_step || event.said.step > run.spec.train.steps) return;
  place.progress().ended = true;
  place.progress().ended_step = event.said.step;
  place.progress().step = std::max(place.progress().step, event.said.step);
  if (run.phase == RunPhase::kPreparing || run.phase == RunPhase::kTraining) {
    run.phase = RunPhase::kEnding;
    run.phase_deadline = turn.now + turn.state.options.ending_max;
  }
  FinishIfComplete(turn, run);
}

void FinishIfComplete(Turn& turn, RunRecord& run) {
  if (!IsActive(run) || InterruptFailedEnd(turn, run)) return;
  const bool all_ended = std::all_of(run.progress.begin(), run.progress.end(),
                                     [](const StageProgress& p) { return p.ended; });
  if (!all_ended) return;
  const int64_t step = run.progress[0].ended_step;
  for (int stage = 1; stage < GroupCount(run); ++stage) {
    const int64_t other = run.progress[static_cast<size_t>(stage)].ended_step;
    if (other == step) continue;
    Interrupt(turn, run,
              absl::StrCat(NameStage(run, 0), " ended after step ", step, " but ",
                           NameStage(run, stage), " after step ", other),
              "");
    return;
  }
  if (IsSaved(run, step)) {
    Finish(turn, run, step);
  } else if (!run.commits.contains(step) && !run.checkpoint_problem.empty()) {
    Interrupt(turn, run, run.checkpoint_problem, "");
  }
}

void FinishIfNothingIsLeft(Turn& turn, RunRecord& run) {
  const int64_t steps = run.spec.train.steps;
  if (IsActive(run) || run.state == RunState::kDone || run.checkpoint->step < steps) return;
  ChangeRun(turn, run, RunState::kDone, RunPhase::kIdle,
            absl::StrCat("all ", steps, " steps are done"));
  if (!run.waiter.has_value()) return;
  turn.Refuse(run.waiter->request,
              absl::FailedPreconditionError(
                  absl::StrCat("run ", run.spec.name, " is done; there is nothing to resume")));
  run.waiter.reset();
}

}  // namespace longhaul::coordinator
