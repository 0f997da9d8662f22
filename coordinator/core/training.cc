#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

std::string MakeToken(const CoreOptions& options, const RunRecord& run) {
  return Sha256Hex(
      absl::StrCat(options.token_secret, "\n", run.spec.name, "\n", ToString(run.epoch)));
}

// Of a plan with nodes of several numeric classes.
std::string MixingNote(const RunRecord& run) {
  const size_t classes = run.plan.has_value() ? run.plan->numeric_classes.size() : 0;
  if (classes < 2) return "";
  return absl::StrCat("; nodes of ", classes,
                      " numeric classes take part, so the bits depend on where each stage runs");
}

std::string Describe(const RunRecord& run) {
  const int stages = run.plan.has_value() ? run.plan->StageCount() : 0;
  const int groups = GroupCount(run);
  return absl::StrCat(stages, " stage", stages == 1 ? "" : "s",
                      groups > stages ? absl::StrCat(" on ", groups, " nodes") : "", ", epoch ",
                      ToString(run.epoch), MixingNote(run));
}

// Every stage is ready, now or before the coordinator's restart.
void BeginTraining(Turn& turn, RunRecord& run) {
  run.phase = RunPhase::kTraining;
  run.phase_deadline = absl::InfiniteFuture();
  turn.Explain(absl::StrCat("run ", run.spec.name, " trains: ", Describe(run)));
  AnswerStepRequest(turn, run);
  run.step_is_named = false;
  for (int stage = 0; stage < GroupCount(run); ++stage) SendStart(turn, run, stage);
  const bool some_ended = std::any_of(run.progress.begin(), run.progress.end(),
                                      [](const StageProgress& p) { return p.ended; });
  if (run.stop_requested || some_ended || HasDrainingNode(turn.state, run)) {
    BeginEnding(turn, run, run.reason);
    FinishIfComplete(turn, run);
  }
}

void BeginTrainingIfReady(Turn& turn, RunRecord& run) {
  const bool all_ready = std::all_of(run.progress.begin(), run.progress.end(),
                                     [](const StageProgress& p) { return p.ready; });
  if (run.phase == RunPhase::kPreparing && all_ready) BeginTraining(turn, run);
}

void OnProgress(Turn& turn, const Place& place, int64_t step) {
  StageProgress& progress = place.progress();
  if (step <= progress.step) return;
  progress.step = step;
  if (place.run->phase == RunPhase::kEnding) {
    place.run->phase_deadline = turn.now + turn.state.options.ending_max;
  }
}

// Whether the node may have trained the step. Of older epochs the plans are not known any more.
bool IsSound(const control::StepReport& report, const RunRecord& run, const NodeRecord& node) {
  if (report.step < 1 || report.step > run.spec.train.steps || report.stages < 1 ||
      report.stage < 0 || report.stage >= report.stages || report.epoch > run.epoch) {
    return false;
  }
  if (report.epoch != run.epoch) return true;
  return report.stages == GroupCount(run) &&
         run.plan->stages[static_cast<size_t>(report.stage)].node == node.facts.profile.name;
}

// The first plan's class stays that of the run; one that may mix them gathers those of every plan.
void AddNumericClasses(const Plan& plan, RunRecord& run) {
  if (!run.spec.any_numeric_class && !run.numeric_classes.empty()) return;
  std::set<std::string> classes(run.numeric_classes.begin(), run.numeric_classes.end());
  classes.insert(plan.numeric_classes.begin(), plan.numeric_classes.end());
  run.numeric_classes.assign(classes.begin(), classes.end());
}

}  // namespace

void BeginEpoch(Turn& turn, RunRecord& run, const Plan& plan) {
  AcceptRequest(turn, run);
  run.epoch = run.planning_epoch;
  run.plan = plan;
  run.token = MakeToken(turn.state.options, run);
  AddNumericClasses(plan, run);
  run.start_step = run.checkpoint.has_value() ? run.checkpoint->step : 0;
  run.stop_requested = false;
  run.draining = false;
  run.checkpoint_problem.clear();
  DropUnfinished(turn, run);
  run.diverged.clear();
  int64_t reached = 0;
  for (const StageProgress& progress : run.progress) reached = std::max(reached, progress.step);
  run.progress.assign(plan.stages.size(), StageProgress{.attached = true, .step = run.start_step});
  std::string reason = Describe(run);
  if (const std::string note = DamageNote(run); !note.empty()) {
    absl::StrAppend(&reason, "; ", note, ": resumed from ", ResumePoint(run));
  }
  if (reached > run.start_step) {
    absl::StrAppend(&reason, "; trains again from step ", run.start_step + 1, " (step ", reached,
                    " was reached)");
  }
  ChangeRun(turn, run, RunState::kRunning, RunPhase::kPreparing, std::move(reason));
  run.phase_deadline = turn.now + turn.state.options.prepare_max;
  for (int stage = 0; stage < GroupCount(run); ++stage) SendAssignment(turn, run, stage);
  if (!run.waiter.has_value()) return;
  if (run.waiter->step.has_value()) {
    run.step_request = StepRequest{run.waiter->request, turn.now + turn.state.options.lease};
    run.waiter.reset();
    return;
  }
  const std::string how = run.waiter->is_start
                              ? " started: "
                              : absl::StrCat(" resumed after step ", run.start_step, ": ");
  turn.Answer(run.waiter->request, absl::StrCat("run ", run.spec.name, how, Describe(run)));
  run.waiter.reset();
}

void AnswerStepRequest(Turn& turn, RunRecord& run) {
  if (!run.step_request.has_value()) return;
  const bool loads = run.phase == RunPhase::kPreparing;
  turn.Answer(run.step_request->request,
              absl::StrCat("run ", run.spec.name, " resumed after step ", run.start_step, ": ",
                           Describe(run), loads ? "; its checkpoint is being loaded" : ""));
  run.step_request.reset();
}

void SendAssignment(Turn& turn, const RunRecord& run, int stage) {
  turn.Do(Assign{SessionOf(turn.state, run, stage), run.spec.name, run.epoch, stage});
}

void SendStart(Turn& turn, const RunRecord& run, int stage) {
  const uint64_t session = SessionOf(turn.state, run, stage);
  if (session == 0) return;
  StartTraining start{session, run.spec.name, run.epoch};
  const int of = run.plan->StageOf(stage);
  for (int group = 0; run.plan->IsReplicated(stage) && group < GroupCount(run); ++group) {
    if (run.plan->StageOf(group) != of) continue;
    start.rendezvous.push_back(run.progress[static_cast<size_t>(group)].rendezvous);
  }
  turn.Do(std::move(start));
}

void OnStagePreparing(Turn& turn, const StagePreparing& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.run->phase != RunPhase::kPreparing || place.progress().ready) {
    return;
  }
  place.run->phase_deadline = turn.now + turn.state.options.prepare_max;
}

void OnStageReady(Turn& turn, const StageReady& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr) return;
  RunRecord& run = *place.run;
  place.progress().ready = true;
  place.progress().rendezvous = event.said.rendezvous;
  if (run.phase == RunPhase::kTraining || run.phase == RunPhase::kEnding) {
    SendStart(turn, run, place.stage);
    return;
  }
  BeginTrainingIfReady(turn, run);
}

void OnStepReported(Turn& turn, const StepReported& event) {
  const control::StepReport& report = event.said;
  const RunRecord* run = FindRun(turn.state, report.run);
  const NodeRecord* node = FindSession(turn.state, event.session);
  // Reports of an older epoch count as well: the weights are the same bits.
  if (run != nullptr && IsSound(report, *run, *node)) {
    turn.Do(RecordStep{report});
    const Place place = FindPlace(turn.state, event.session, report.run, report.epoch);
    if (place.run != nullptr && place.stage == report.stage) {
      OnProgress(turn, place, report.step);
    }
  }
  turn.Do(AcknowledgeStep{event.session, report.run, report.epoch, report.step});
}

void AdoptIfComplete(Turn& turn, RunRecord& run) {
  bool has_trained = false;
  for (const StageProgress& progress : run.progress) {
    if (!progress.attached && !progress.ended) return;
    has_trained = has_trained || progress.ended || progress.step > run.start_step;
  }
  turn.Explain(absl::StrCat("run ", run.spec.name, " was adopted: ", Describe(run)));
  if (has_trained) {
    BeginTraining(turn, run);
    return;
  }
  // Stages that are ready say so again.
  run.phase = RunPhase::kPreparing;
  run.phase_deadline = turn.now + turn.state.options.prepare_max;
  BeginTrainingIfReady(turn, run);
}

}  // namespace longhaul::coordinator
