// Commits and prunes checkpoints, and keeps shards that are on their way into one from being
// pruned.
#ifndef LONGHAUL_COORDINATOR_HOST_CHECKPOINTS_H_
#define LONGHAUL_COORDINATOR_HOST_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_store.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// Thread-safe.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // A worker's upload. The shard is safe from pruning for a day, until a manifest names it, or
  // until it is dropped.
  // Errors as ShardStore::PutShard.
  virtual absl::Status StoreShard(absl::string_view sha256, absl::string_view bytes) = 0;

  // Commits a manifest of a run of `spec`. OK once it is durable.
  virtual absl::Status Commit(const checkpoint::Manifest& manifest, const run::RunSpec& spec) = 0;

  // Removes the run's manifests of steps before `before_step`, then shards that nothing needs any
  // more. Trouble goes to the log.
  virtual void Prune(const std::string& run, int64_t before_step) = 0;

  // No checkpoint of the run needs these uploads. They are removed by the next pruning that comes a
  // minute after their upload (until then the same bytes may be on their way into a checkpoint of
  // another run), or by this, which prunes once a minute.
  virtual void Drop(const std::string& run, const std::vector<std::string>& sha256s) = 0;
};

// In a ShardStore, which must outlive this. Shards that are in it without a manifest when this is
// made count as uploaded then: a restart of the coordinator costs no checkpoint in the making.
class StoredCheckpoints : public Checkpoints {
 public:
  using Log = std::function<void(bool warning, const std::string& text)>;
  StoredCheckpoints(checkpoint::ShardStore& store, Clock& clock, Log log);

  absl::Status StoreShard(absl::string_view sha256, absl::string_view bytes) override;
  absl::Status Commit(const checkpoint::Manifest& manifest, const run::RunSpec& spec) override;
  void Prune(const std::string& run, int64_t before_step) override;
  void Drop(const std::string& run, const std::vector<std::string>& sha256s) override;

 private:
  // Protects the shards that came before this was made; until it succeeds nothing is pruned.
  absl::Status ProtectEarlierUploads();

  checkpoint::ShardStore& store_;
  Clock& clock_;
  const Log log_;
  // Uploads hold it shared, pruning alone: a shard found in place is not removed under an upload.
  std::shared_mutex pruning_;
  std::mutex mutex_;
  // Guarded by mutex_.
  struct Upload {
    absl::Time at;
    bool dropped = false;
  };
  std::map<std::string, Upload> uploads_;  // by hash
  absl::Time pruned_at_ = absl::InfinitePast();
  bool earlier_are_protected_ = false;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_CHECKPOINTS_H_
