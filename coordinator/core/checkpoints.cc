#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// Checkpoints that may be in the making at once. Stages of a pipeline are a step or two apart; more
// means that a stage never stores its shard, and the oldest is given up.
constexpr size_t kPendingStepsMax = 16;

int64_t TokensUpTo(const run::RunSpec& spec, int64_t step) {
  int64_t tokens = 0;
  if (__builtin_mul_overflow(spec.train.global_batch, spec.model.context, &tokens) ||
      __builtin_mul_overflow(tokens, step, &tokens)) {
    return std::numeric_limits<int64_t>::max();
  }
  return tokens;
}

// One at a time, so that commits never queue: of those that get complete meanwhile only the newest
// is kept.
void RequestCommit(Turn& turn, RunRecord& run, int64_t step) {
  checkpoint::Manifest manifest;
  manifest.run = run.spec.name;
  manifest.epoch = run.epoch;
  manifest.step = step;
  manifest.tokens = TokensUpTo(run.spec, step);
  manifest.numeric_class = run.numeric_class;
  for (auto& [stage, shard] : run.pending_shards[step]) {
    manifest.shards.push_back(std::move(shard));
  }
  run.pending_shards.erase(step);
  if (run.commits.empty()) {
    turn.Do(CommitManifest{manifest});
  } else if (run.commits.rbegin()->first > step) {
    return;
  } else {
    run.commits.erase(std::next(run.commits.begin()), run.commits.end());
  }
  run.commits[step] = std::move(manifest);
}

void OnCommitted(Turn& turn, RunRecord& run, checkpoint::Manifest manifest) {
  const int64_t step = manifest.step;
  if (run.checkpoint.has_value() && run.checkpoint->step >= step) return;
  AddCheckpoint(run, std::move(manifest));
  run.pending_shards.erase(run.pending_shards.begin(), run.pending_shards.upper_bound(step));
  turn.Do(PersistRun{run.spec.name});
  turn.Explain(
      absl::StrCat("run ", run.spec.name, ": the checkpoint of step ", step, " is committed"));
  PruneHistory(turn, run);
  if (!run.checkpoint_problem.empty()) {
    run.checkpoint_problem.clear();
    if (IsActive(run)) {
      run.reason = absl::StrCat("the checkpoint of step ", step, " was made after earlier trouble");
    }
  }
  FinishIfNothingIsLeft(turn, run);
}

void OnCommitFailed(Turn& turn, RunRecord& run, int64_t step, const absl::Status& status) {
  run.checkpoint_problem =
      absl::StrCat("the checkpoint of step ", step, " was not made: ", status.message());
  if (IsActive(run)) {
    ChangeRun(turn, run, run.state, run.phase,
              absl::StrCat(run.checkpoint_problem, "; the run goes on"));
  }
}

}  // namespace

void OnShardStored(Turn& turn, const ShardStored& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.stage != event.said.stage) return;
  RunRecord& run = *place.run;
  // Of the replicas of a stage the first stores its state for all.
  if (run.plan->stages[static_cast<size_t>(place.stage)].replica != 0) return;
  const bool committed = run.checkpoint.has_value() && run.checkpoint->step >= event.said.step;
  if (committed || event.said.step < run.start_step || event.said.step > run.spec.train.steps ||
      run.commits.contains(event.said.step)) {
    return;
  }
  run.pending_shards[event.said.step][event.said.stage] = event.said.shard;
  if (static_cast<int>(run.pending_shards[event.said.step].size()) == run.plan->StageCount()) {
    RequestCommit(turn, run, event.said.step);
  } else if (run.pending_shards.size() > kPendingStepsMax) {
    run.pending_shards.erase(run.pending_shards.begin());
  }
}

void OnShardFailed(Turn& turn, const ShardFailed& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.stage != event.said.stage) return;
  RunRecord& run = *place.run;
  if (run.checkpoint.has_value() && run.checkpoint->step >= event.said.step) return;
  run.pending_shards.erase(event.said.step);
  place.progress().failed_step = event.said.step;
  OnCommitFailed(turn, run, event.said.step,
                 Annotate(event.said.status, NameStage(run, place.stage)));
  FinishIfComplete(turn, run);
}

void OnManifestCommitted(Turn& turn, const ManifestCommitted& event) {
  RunRecord* run = FindRun(turn.state, event.run);
  if (run == nullptr || run->epoch != event.epoch) return;
  auto commit = run->commits.extract(event.step);
  if (commit.empty()) return;
  if (event.status.ok()) {
    OnCommitted(turn, *run, std::move(commit.mapped()));
  } else {
    OnCommitFailed(turn, *run, event.step, event.status);
  }
  if (!run->commits.empty()) turn.Do(CommitManifest{run->commits.begin()->second});
  FinishIfComplete(turn, *run);
}

}  // namespace longhaul::coordinator
