#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

absl::Status NoWorker() {
  return absl::FailedPreconditionError(
      "no worker is connected; start one with: longhauld worker --config FILE, or a local cluster "
      "with: longhaul up");
}

absl::Status NoSuchRun(const State& state, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [run, record] : state.runs) names.push_back(run);
  return absl::NotFoundError(absl::StrCat(
      "there is no run ", name,
      names.empty() ? "; none was started yet" : "; there are: " + absl::StrJoin(names, ", ")));
}

// A stop while a person's start or resume is being planned: only that request ends. Returns what
// became of the run.
std::string Withdraw(Turn& turn, RunRecord& run) {
  const std::string name = absl::StrCat("run ", run.spec.name);
  const std::string text =
      run.waiter->is_start
          ? absl::StrCat(name, " is not started: it was not planned yet")
          : absl::StrCat(name, " is not resumed; it is ", RunStateName(run.state), " as before");
  if (run.waiter->is_start) {
    // The answer of the planner, still at work, must not be taken for that to a later start.
    turn.state.withdrawn = std::max(turn.state.withdrawn, run.planning_epoch);
  }
  RefuseRequest(turn, run,
                absl::AbortedError(absl::StrCat(name, " was stopped before it was planned")));
  return text;
}

// A stop before any stage trains: nothing is lost by leaving at once.
void StopAtOnce(Turn& turn, RunRecord& run) {
  run.draining = false;
  const bool was_preparing = IsActive(run);
  std::vector<uint64_t> sessions;
  for (int stage = 0; was_preparing && stage < GroupCount(run); ++stage) {
    sessions.push_back(SessionOf(turn.state, run, stage));
  }
  const bool was_trained = run.checkpoint.has_value() || run.interrupted_at != absl::InfinitePast();
  ChangeRun(
      turn, run, RunState::kStopped, RunPhase::kIdle,
      absl::StrCat("stopped as asked before it ",
                   was_trained ? "went on from " + ResumePoint(run) : "trained", ResumeHint(run)));
  for (const uint64_t session : sessions) {
    if (session == 0) continue;
    turn.Do(AbortStage{session, run.spec.name, run.epoch, "the run was stopped"});
  }
}

// Of a run that is not idle, or done.
std::string WhyNotResumed(const State& state, const RunRecord& run) {
  if (run.waiter.has_value()) return "being planned already; wait for the answer";
  if (run.phase != RunPhase::kIdle && run.stop_requested) {
    return "stopping; wait for it to stop, then resume it";
  }
  const std::string wait = DescribeWait(state, run);
  return absl::StrCat(
      RunStateName(run.state), "; ",
      wait.empty() ? "there is nothing to resume" : wait + ", and can be resumed if it does not");
}

}  // namespace

void OnStartRun(Turn& turn, const StartRun& event) {
  const std::string& name = event.spec.name;
  if (const RunRecord* known = FindRun(turn.state, name); known != nullptr) {
    turn.Refuse(event.request, absl::AlreadyExistsError(absl::StrCat(
                                   "run ", name, " exists and is ", RunStateName(known->state),
                                   "; choose another name, or see: longhaul run show ", name)));
    return;
  }
  if (absl::Status valid = ValidateName("run name", name); !valid.ok()) {
    turn.Refuse(event.request, std::move(valid));
    return;
  }
  if (UsableNodes(turn.state, true).empty()) {
    turn.Refuse(event.request, NoWorker());
    return;
  }
  RunRecord& run = turn.state.runs[name];
  run.spec = event.spec;
  run.checkpoint = event.checkpoint;
  run.sequence = turn.state.next_run_sequence++;
  run.planning_epoch = turn.state.withdrawn;
  run.waiter = PlanWaiter{.request = event.request, .is_start = true};
  BeginPlanning(turn, run);
}

void OnStopRun(Turn& turn, const StopRun& event) {
  RunRecord* run = FindRun(turn.state, event.run);
  if (run == nullptr) {
    turn.Refuse(event.request, NoSuchRun(turn.state, event.run));
    return;
  }
  const std::string name = absl::StrCat("run ", event.run);
  switch (run->phase) {
    case RunPhase::kIdle:
      turn.Answer(event.request, absl::StrCat(name, " is ", RunStateName(run->state), " already"));
      return;
    case RunPhase::kWaiting:
    case RunPhase::kPlanning:
    case RunPhase::kPreparing:
      if (run->waiter.has_value()) {
        turn.Answer(event.request, Withdraw(turn, *run));
        return;
      }
      StopAtOnce(turn, *run);
      turn.Answer(event.request, absl::StrCat(name, " is stopped"));
      return;
    case RunPhase::kTraining:
      run->stop_requested = true;
      BeginEnding(turn, *run, "stops after the current step, as asked");
      break;
    case RunPhase::kEnding:
    case RunPhase::kAdopting:
      if (!run->stop_requested) {
        run->stop_requested = true;
        turn.Do(PersistRun{event.run});
      }
      if (run->phase == RunPhase::kEnding) SendStop(turn, *run);
      break;
  }
  turn.Answer(event.request, absl::StrCat(name, " stops after the current step"));
}

void OnResumeRun(Turn& turn, const ResumeRun& event) {
  RunRecord* run = FindRun(turn.state, event.run);
  if (run == nullptr) {
    turn.Refuse(event.request, NoSuchRun(turn.state, event.run));
    return;
  }
  if (run->phase != RunPhase::kIdle || run->state == RunState::kDone) {
    turn.Refuse(event.request, absl::FailedPreconditionError(absl::StrCat(
                                   "run ", event.run, " is ", WhyNotResumed(turn.state, *run))));
    return;
  }
  if (event.stages < 0 || event.replicas < 0) {
    turn.Refuse(event.request, absl::InvalidArgumentError(
                                   absl::StrCat("stages and replicas must be positive, got ",
                                                event.stages, " and ", event.replicas)));
    return;
  }
  if (UsableNodes(turn.state, true).empty()) {
    turn.Refuse(event.request, NoWorker());
    return;
  }
  if (event.step.has_value()) {
    if (absl::Status found = CheckStep(*run, *event.step); !found.ok()) {
      turn.Refuse(event.request, std::move(found));
      return;
    }
  } else if (HasLostItsCheckpoint(*run)) {
    turn.Refuse(event.request,
                absl::FailedPreconditionError(absl::StrCat(DamageNote(*run), ResumeHint(*run))));
    return;
  }
  run->waiter = PlanWaiter{.request = event.request,
                           .stages = event.stages,
                           .replicas = event.replicas,
                           .step = event.step};
  BeginPlanning(turn, *run);
}

}  // namespace longhaul::coordinator
