// A job's checkpoints: what it stores, where, and what it says of it.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/stage_parameters.h"
#include "worker/host/stage_job.h"
#include "worker/host/stage_state.h"

namespace longhaul::worker {
namespace {

constexpr absl::Duration kSkippedSaidEvery = absl::Seconds(10);

}  // namespace

KeptShards StageJob::MakeKeptShards() {
  return KeptShards(absl::StrCat(options_.folder, "/checkpoints"), local_shards_,
                    [this](const std::string& text) { Log(LogLevel::kWarning, text); });
}

absl::Status StageJob::Save(int64_t step, bool last) {
  // The replicas of a stage have the same state; the first stores it.
  if (plan_.replica > 0) {
    if (last) End(step);
    return absl::OkStatus();
  }
  if (last) SetPhase("storing the last checkpoint");
  const std::vector<int> owned = model::OwnedParameters(plan_.graph, plan_.ranges)[plan_.stage];
  LH_ASSIGN_OR_RETURN(checkpoint::EncodedShard shard, SaveStage(plan_.graph, owned, *stage_));
  keeper_->Put({step, std::move(shard), last, absl::OkStatus()});
  return absl::OkStatus();
}

void StageJob::OnShard(const ShardTask& task, const absl::Status& status) {
  if (!task.local.ok()) {
    Log(LogLevel::kWarning, absl::StrCat("checkpoint of step ", task.step,
                                         " is not kept on this node: ", task.local.message()));
  }
  const Epoch& epoch = assignment_.epoch;
  const std::string& run = assignment_.run;
  const int stage = assignment_.stage;
  // They may be due a hundred times a second: it is said often enough to be seen.
  if (absl::IsAborted(status) && !task.last) {
    const absl::Time now = dependencies_.clock->Now();
    if (now < skipped_said_ + kSkippedSaidEvery) return;
    skipped_said_ = now;
  }
  if (status.ok()) {
    outbox_.Add(run, epoch, ShardStored{run, epoch, stage, task.step, task.shard.shard});
  } else {
    Log(LogLevel::kWarning,
        absl::StrCat("checkpoint of step ", task.step, " not stored: ", status.message()));
    outbox_.Add(run, epoch, ShardFailed{run, epoch, stage, task.step, status});
  }
  if (task.last) End(task.step);
}

}  // namespace longhaul::worker
