#include "coordinator/host/checkpoints.h"

#include <shared_mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

// Longer than any checkpoint is in the making; an upload that never came into one is rubbish then.
constexpr absl::Duration kUploadKept = absl::Hours(24);

// A worker reports an upload at once, unless its control stream has just broken.
constexpr absl::Duration kDroppedKept = absl::Minutes(1);

}  // namespace

StoredCheckpoints::StoredCheckpoints(checkpoint::ShardStore& store, Clock& clock, Log log)
    : store_(store), clock_(clock), log_(std::move(log)) {
  const absl::Status listed = ProtectEarlierUploads();
  if (!listed.ok()) {
    log_(true, absl::StrCat("no old checkpoint is removed for now: ", listed.message()));
  }
}

absl::Status StoredCheckpoints::ProtectEarlierUploads() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (earlier_are_protected_) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> earlier, store_.UnnamedShards());
  for (const std::string& sha256 : earlier) uploads_.emplace(sha256, Upload{clock_.Now()});
  earlier_are_protected_ = true;
  return absl::OkStatus();
}

absl::Status StoredCheckpoints::StoreShard(absl::string_view sha256, absl::string_view bytes) {
  const std::shared_lock<std::shared_mutex> no_pruning(pruning_);
  LH_RETURN_IF_ERROR(store_.PutShard(sha256, bytes));
  const std::lock_guard<std::mutex> lock(mutex_);
  uploads_[std::string(sha256)] = Upload{clock_.Now()};
  return absl::OkStatus();
}

absl::Status StoredCheckpoints::Commit(const checkpoint::Manifest& manifest,
                                       const run::RunSpec& spec) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(spec.model));
  LH_RETURN_IF_ERROR(store_.Commit(manifest, graph));
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const checkpoint::Shard& shard : manifest.shards) uploads_.erase(shard.sha256);
  return absl::OkStatus();
}

void StoredCheckpoints::Prune(const std::string& run, int64_t before_step) {
  const std::unique_lock<std::shared_mutex> no_uploads(pruning_);
  std::vector<std::string> on_their_way;
  absl::Status pruned = ProtectEarlierUploads();
  if (pruned.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const absl::Time now = clock_.Now();
    pruned_at_ = now;
    for (auto upload = uploads_.begin(); upload != uploads_.end();) {
      const absl::Duration kept = upload->second.dropped ? kDroppedKept : kUploadKept;
      if (now - upload->second.at > kept) {
        upload = uploads_.erase(upload);
      } else {
        on_their_way.push_back(upload->first);
        ++upload;
      }
    }
  }
  if (pruned.ok()) pruned = store_.Prune(run, before_step, on_their_way);
  if (!pruned.ok()) {
    log_(true,
         absl::StrCat("old checkpoints of run ", run, " were not removed: ", pruned.message()));
  }
}

void StoredCheckpoints::Drop(const std::string& run, const std::vector<std::string>& sha256s) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& sha256 : sha256s) {
      const auto upload = uploads_.find(sha256);
      if (upload != uploads_.end()) upload->second.dropped = true;
    }
    if (clock_.Now() - pruned_at_ < kDroppedKept) return;
  }
  Prune(run, 0);
}

}  // namespace longhaul::coordinator
