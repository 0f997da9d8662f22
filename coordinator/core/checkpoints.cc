#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/roundness.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

int64_t TokensUpTo(const run::RunSpec& spec, int64_t step) {
  int64_t tokens = 0;
  if (__builtin_mul_overflow(spec.train.global_batch, spec.model.context, &tokens) ||
      __builtin_mul_overflow(tokens, step, &tokens)) {
    return std::numeric_limits<int64_t>::max();
  }
  return tokens;
}

// Has the host drop those of the shards that no checkpoint of the run has and none in the making
// needs. Another run may have the same bytes.
void Drop(Turn& turn, const RunRecord& run, const std::vector<std::string>& sha256s) {
  if (sha256s.empty()) return;
  std::set<std::string> needed;
  for (const auto& [name, other] : turn.state.runs) {
    for (const auto& [step, shards] : other.pending_shards) {
      for (const auto& [stage, shard] : shards) needed.insert(shard.sha256);
    }
    for (const auto& [step, manifest] : other.commits) {
      for (const checkpoint::Shard& shard : manifest.shards) needed.insert(shard.sha256);
    }
  }
  DropShards drop{run.spec.name, {}};
  for (const std::string& sha256 : sha256s) {
    if (!needed.contains(sha256) && !IsNamed(run, sha256)) drop.sha256s.push_back(sha256);
  }
  if (!drop.sha256s.empty()) turn.Do(std::move(drop));
}

// Gives up the steps that are not whole for which `is_useless`(step, shards) holds.
template <typename F>
void DropPending(Turn& turn, RunRecord& run, F is_useless) {
  std::vector<std::string> sha256s;
  std::erase_if(run.pending_shards, [&](const auto& pending) {
    const auto& [step, shards] = pending;
    if (!is_useless(step, shards)) return false;
    for (const auto& [stage, shard] : shards) sha256s.push_back(shard.sha256);
    return true;
  });
  Drop(turn, run, sha256s);
}

void DropManifest(Turn& turn, const RunRecord& run, const checkpoint::Manifest& manifest) {
  std::vector<std::string> sha256s;
  for (const checkpoint::Shard& shard : manifest.shards) sha256s.push_back(shard.sha256);
  Drop(turn, run, sha256s);
}

// Steps that can still become whole are bounded: the roundest are kept, as the stages do.
void ThinOut(Turn& turn, RunRecord& run) {
  checkpoint::RoundSteps round;
  std::set<int64_t> stay;
  for (auto pending = run.pending_shards.rbegin(); pending != run.pending_shards.rend();
       ++pending) {
    if (round.Keep(pending->first)) stay.insert(pending->first);
  }
  DropPending(turn, run, [&](int64_t step, const auto&) { return !stay.contains(step); });
}

// One at a time, so that commits never queue: of those that get complete meanwhile only the newest
// is kept.
void RequestCommit(Turn& turn, RunRecord& run, int64_t step) {
  checkpoint::Manifest manifest;
  manifest.run = run.spec.name;
  manifest.epoch = run.epoch;
  manifest.step = step;
  manifest.tokens = TokensUpTo(run.spec, step);
  manifest.numeric_class = NumericClassText(run);
  for (auto& [stage, shard] : run.pending_shards[step]) {
    manifest.shards.push_back(std::move(shard));
  }
  run.pending_shards.erase(step);
  if (run.commits.empty()) {
    turn.Do(CommitManifest{manifest});
  } else if (run.commits.rbegin()->first > step) {
    DropManifest(turn, run, manifest);
    return;
  } else if (const auto waiting = std::next(run.commits.begin()); waiting != run.commits.end()) {
    const checkpoint::Manifest overtaken = std::move(waiting->second);
    run.commits.erase(waiting);
    DropManifest(turn, run, overtaken);
  }
  run.commits[step] = std::move(manifest);
}

void OnCommitted(Turn& turn, RunRecord& run, checkpoint::Manifest manifest) {
  const int64_t step = manifest.step;
  if (run.checkpoint.has_value() && run.checkpoint->step >= step) return;
  AddCheckpoint(run, std::move(manifest));
  DropPending(turn, run, [step](int64_t pending, const auto&) { return pending <= step; });
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
  if (committed || event.said.step < run.start_step || event.said.step > run.spec.train.steps) {
    Drop(turn, run, {event.said.shard.sha256});
    return;
  }
  if (run.commits.contains(event.said.step)) return;
  // A stage stores in the order of steps: what it has not stored before this it never will.
  DropPending(turn, run, [&](int64_t step, const auto& shards) {
    return step < event.said.step && !shards.contains(event.said.stage);
  });
  run.pending_shards[event.said.step][event.said.stage] = event.said.shard;
  if (static_cast<int>(run.pending_shards[event.said.step].size()) == run.plan->StageCount()) {
    RequestCommit(turn, run, event.said.step);
  } else {
    ThinOut(turn, run);
  }
}

void OnShardFailed(Turn& turn, const ShardFailed& event) {
  const Place place = FindPlace(turn.state, event.session, event.said.run, event.said.epoch);
  if (place.run == nullptr || place.stage != event.said.stage) return;
  RunRecord& run = *place.run;
  if (run.checkpoint.has_value() && run.checkpoint->step >= event.said.step) return;
  DropPending(turn, run, [&](int64_t step, const auto&) { return step == event.said.step; });
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
    DropManifest(turn, *run, commit.mapped());
    OnCommitFailed(turn, *run, event.step, event.status);
  }
  if (!run->commits.empty()) turn.Do(CommitManifest{run->commits.begin()->second});
  FinishIfComplete(turn, *run);
}

void DropPendingShards(Turn& turn, RunRecord& run) {
  DropPending(turn, run, [](int64_t, const auto&) { return true; });
}

void DropUnfinished(Turn& turn, RunRecord& run) {
  for (const auto& [step, manifest] : std::exchange(run.commits, {})) {
    DropManifest(turn, run, manifest);
  }
  DropPendingShards(turn, run);
}

}  // namespace longhaul::coordinator
