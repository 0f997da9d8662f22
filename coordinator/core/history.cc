#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

bool HasShard(const checkpoint::Manifest& manifest, const std::string& sha256) {
  return std::any_of(manifest.shards.begin(), manifest.shards.end(),
                     [&](const checkpoint::Shard& shard) { return shard.sha256 == sha256; });
}

void AddOther(RunRecord& run, OtherCheckpoint other) {
  std::vector<OtherCheckpoint>& others = run.other_checkpoints;
  const auto later = [&](const OtherCheckpoint& o) {
    return o.manifest.step >= other.manifest.step;
  };
  others.insert(std::find_if(others.begin(), others.end(), later), std::move(other));
}

// The newest before a step that is not damaged, if any, becomes the one to resume from.
void TakeNewest(RunRecord& run, int64_t before_step) {
  std::vector<OtherCheckpoint>& others = run.other_checkpoints;
  for (auto other = others.rbegin(); other != others.rend(); ++other) {
    if (other->manifest.step >= before_step || !other->damage.empty()) continue;
    run.checkpoint = std::move(other->manifest);
    others.erase(std::next(other).base());
    return;
  }
}

void MarkDamaged(RunRecord& run, const std::string& sha256, const std::string& damage) {
  for (OtherCheckpoint& other : run.other_checkpoints) {
    if (HasShard(other.manifest, sha256)) other.damage = damage;
  }
  AddOther(run, {*std::exchange(run.checkpoint, std::nullopt), damage});
}

// To be planned again, or, where a stop was asked for, stopped. Returns the reason.
std::string LeaveForOlder(Turn& turn, RunRecord& run) {
  if (std::exchange(run.stop_requested, false)) {
    const std::string reason =
        absl::StrCat("stopped as asked; ", DamageNote(run), ": it goes on from ", ResumePoint(run));
    ChangeRun(turn, run, RunState::kStopped, RunPhase::kIdle,
              absl::StrCat(reason, ResumeHint(run)));
    return reason;
  }
  const std::string reason = absl::StrCat(DamageNote(run), ": resumed from ", ResumePoint(run));
  ChangeRun(turn, run, RunState::kPending, RunPhase::kWaiting, reason);
  return reason;
}

// "it has those of steps 10, 20", which are not known to be damaged.
std::string GoodSteps(const RunRecord& run) {
  std::vector<int64_t> steps;
  for (const OtherCheckpoint& other : run.other_checkpoints) {
    if (other.damage.empty()) steps.push_back(other.manifest.step);
  }
  if (run.checkpoint.has_value()) steps.push_back(run.checkpoint->step);
  std::sort(steps.begin(), steps.end());
  return steps.empty() ? "it has none"
                       : absl::StrCat("it has those of steps ", absl::StrJoin(steps, ", "));
}

// Whether a step needs no checkpoint: initial weights can be drawn again, unless they were given.
bool IsDrawn(const RunRecord& run, int64_t step) { return step == 0 && run.spec.from.empty(); }

}  // namespace

void AddCheckpoint(RunRecord& run, checkpoint::Manifest manifest) {
  std::erase_if(run.other_checkpoints,
                [&](const OtherCheckpoint& other) { return other.manifest.step == manifest.step; });
  if (run.checkpoint.has_value()) AddOther(run, {*std::move(run.checkpoint), ""});
  run.checkpoint = std::move(manifest);
}

bool IsNamed(const RunRecord& run, const std::string& sha256) {
  return (run.checkpoint.has_value() && HasShard(*run.checkpoint, sha256)) ||
         std::any_of(
             run.other_checkpoints.begin(), run.other_checkpoints.end(),
             [&](const OtherCheckpoint& other) { return HasShard(other.manifest, sha256); });
}

void PruneHistory(Turn& turn, RunRecord& run) {
  int64_t before_step = 0;
  int kept = 1;
  std::vector<OtherCheckpoint>& others = run.other_checkpoints;
  for (auto other = others.rbegin(); other != others.rend(); ++other) {
    const bool counts = other->damage.empty() && other->manifest.step < run.checkpoint->step;
    if (counts && ++kept > turn.state.options.checkpoints_kept) {
      before_step = other->manifest.step + 1;
      break;
    }
  }
  // What a resume that is being planned goes back to is not taken from under it.
  if (run.waiter.has_value() && run.waiter->step.has_value() && !IsDrawn(run, *run.waiter->step)) {
    before_step = std::min(before_step, *run.waiter->step);
  }
  std::erase_if(others, [&](const OtherCheckpoint& o) { return o.manifest.step < before_step; });
  turn.Do(PruneCheckpoints{run.spec.name, before_step});
}

absl::Status CheckStep(const RunRecord& run, int64_t step) {
  if (IsDrawn(run, step) || (run.checkpoint.has_value() && run.checkpoint->step == step)) {
    return absl::OkStatus();
  }
  // A damaged one may have been repaired since: loading it tells.
  for (const OtherCheckpoint& other : run.other_checkpoints) {
    if (other.manifest.step == step) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("run ", run.spec.name, " has no checkpoint of step ",
                                          step, "; ", GoodSteps(run)));
}

void ChooseCheckpoint(Turn& turn, RunRecord& run, int64_t step) {
  if (run.checkpoint.has_value() && run.checkpoint->step == step) return;
  std::vector<OtherCheckpoint>& others = run.other_checkpoints;
  const auto chosen = std::find_if(others.begin(), others.end(), [&](const OtherCheckpoint& other) {
    return other.manifest.step == step;
  });
  LH_CHECK(IsDrawn(run, step) || chosen != others.end(), "run ", run.spec.name,
           " lost its checkpoint of step ", step, " while a resume from it was planned");
  std::optional<checkpoint::Manifest> manifest;
  if (chosen != others.end()) {
    manifest = std::move(chosen->manifest);
    others.erase(chosen);
  }
  if (run.checkpoint.has_value()) AddOther(run, {*std::move(run.checkpoint), ""});
  run.checkpoint = std::move(manifest);
  // A commit that is still on its way must not move the run forward again.
  DropUnfinished(turn, run);
}

std::string ResumePoint(const RunRecord& run) {
  return run.checkpoint.has_value() ? absl::StrCat("step ", run.checkpoint->step)
                                    : std::string("the beginning");
}

bool HasLostItsCheckpoint(const RunRecord& run) {
  return !run.checkpoint.has_value() &&
         std::any_of(run.other_checkpoints.begin(), run.other_checkpoints.end(),
                     [&](const OtherCheckpoint& other) {
                       return other.manifest.step == run.start_step && !other.damage.empty();
                     });
}

std::string DamageNote(const RunRecord& run) {
  const int64_t from = run.checkpoint.has_value() ? run.checkpoint->step : 0;
  std::vector<std::string> damaged;
  for (const OtherCheckpoint& other : run.other_checkpoints) {
    if (other.damage.empty() || other.manifest.step < from) continue;
    damaged.push_back(absl::StrCat("the checkpoint of step ", other.manifest.step, " is damaged (",
                                   other.damage, ")"));
  }
  return absl::StrJoin(damaged, "; ");
}

bool FallBack(Turn& turn, const Place& place, const StageFailed& event) {
  RunRecord& run = *place.run;
  const bool loading = run.phase == RunPhase::kPreparing || run.phase == RunPhase::kAdopting;
  if (event.said.damaged_shard.empty() || !loading || !run.checkpoint.has_value() ||
      !HasShard(*run.checkpoint, event.said.damaged_shard)) {
    return false;
  }
  constexpr size_t kDigitsShown = 16;
  const int64_t step = run.checkpoint->step;
  MarkDamaged(run, event.said.damaged_shard,
              absl::StrCat(run.plan->NameOf(place.stage), "'s shard ",
                           event.said.damaged_shard.substr(0, kDigitsShown)));
  const std::string& node = run.plan->stages[static_cast<size_t>(place.stage)].node;
  TakeNewest(run, step);
  if (!run.checkpoint.has_value()) {
    Interrupt(turn, run,
              absl::StrCat(DamageNote(run), " and no older one is left: ",
                           NameStage(run, place.stage), ": ", event.said.status.message()),
              node);
    return true;
  }
  if (run.step_is_named) {
    Interrupt(turn, run,
              absl::StrCat("step ", step, " was asked for, but ", DamageNote(run), ": ",
                           NameStage(run, place.stage), ": ", event.said.status.message(), "; ",
                           GoodSteps(run)),
              node);
    return true;
  }
  turn.Warn(absl::StrCat(NameStage(run, place.stage), " of run ", run.spec.name, ": ",
                         event.said.status.message()));
  run.planned_with.clear();
  const std::string reason = LeaveForOlder(turn, run);
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    if (!run.progress[static_cast<size_t>(stage)].attached) continue;
    const uint64_t session = SessionOf(turn.state, run, stage);
    if (session != 0) turn.Do(AbortStage{session, run.spec.name, run.epoch, reason});
  }
  return true;
}

}  // namespace longhaul::coordinator
