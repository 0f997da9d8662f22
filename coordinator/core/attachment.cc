#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// The worker holds a stage that is not in force: free it.
void DismissStray(Turn& turn, uint64_t session, const control::Attachment& attachment) {
  const RunRecord* run = FindRun(turn.state, attachment.run);
  const bool saved = run != nullptr && run->epoch == attachment.epoch &&
                     run->checkpoint.has_value() && run->checkpoint->step == attachment.step;
  if (saved) {
    turn.Do(ReleaseStage{session, attachment.run, attachment.epoch});
    return;
  }
  std::string reason = "the coordinator does not know this run";
  if (run != nullptr) {
    reason = run->epoch == attachment.epoch
                 ? absl::StrCat("the run is ", RunStateName(run->state))
                 : absl::StrCat("epoch ", ToString(run->epoch), " is in force");
  }
  turn.Do(AbortStage{session, attachment.run, attachment.epoch, reason});
}

bool Holds(const Place& place, const control::Attachment& attachment) {
  return place.run != nullptr && place.run->spec.name == attachment.run &&
         place.run->epoch == attachment.epoch && place.stage == attachment.stage;
}

// A stage that is still held: say again what a broken stream may have swallowed.
void ContinueStage(Turn& turn, const NodeRecord& node, const Place& place, int64_t step) {
  RunRecord& run = *place.run;
  StageProgress& progress = place.progress();
  progress.attached = true;
  progress.step = std::max(progress.step, std::min(step, run.spec.train.steps));
  switch (run.phase) {
    case RunPhase::kTraining:
      SendStart(turn, run, place.stage);
      break;
    case RunPhase::kEnding:
      SendStart(turn, run, place.stage);
      if (place.stage == 0) SendStop(turn, run);
      break;
    case RunPhase::kAdopting:
      AdoptIfComplete(turn, run);
      break;
    default:
      break;
  }
}

}  // namespace

void Attach(Turn& turn, NodeRecord& node, const std::optional<control::Attachment>& attachment,
            bool new_process) {
  const Place place = FindPlace(turn.state, node.facts.profile.name);
  const bool holds = attachment.has_value() && Holds(place, *attachment);
  if (attachment.has_value() && !holds) DismissStray(turn, node.session, *attachment);
  if (place.run == nullptr) return;
  if (holds && !new_process) {
    ContinueStage(turn, node, place, attachment->step);
    return;
  }
  place.progress().attached = false;
  if (place.progress().ended) return;
  const std::string who = NameStage(*place.run, place.stage);
  const int64_t step = place.progress().step;
  if (new_process) {
    Interrupt(turn, *place.run,
              absl::StrCat(who, " was lost after step ", step, ": its process was restarted"),
              node.facts.profile.name);
  } else if (place.run->phase == RunPhase::kPreparing) {
    // The assignment was lost with the stream that it was sent on.
    place.progress() = StageProgress{.attached = true, .step = place.run->start_step};
    SendAssignment(turn, *place.run, place.stage);
  } else {
    Interrupt(turn, *place.run,
              absl::StrCat(who, " was lost after step ", step, ": its worker came back without it"),
              node.facts.profile.name);
  }
}

}  // namespace longhaul::coordinator
