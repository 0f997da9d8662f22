// Stores checkpoint shards: on this node first, then at the coordinator, in the background.
#ifndef LONGHAUL_WORKER_HOST_SHARD_KEEPER_H_
#define LONGHAUL_WORKER_HOST_SHARD_KEEPER_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "checkpoint/shard.h"
#include "worker/host/kept_shards.h"
#include "worker/host/remote.h"

namespace longhaul::worker {

// One shard on its way.
struct ShardTask {
  int64_t step = 0;
  checkpoint::EncodedShard shard;
  // The run ends with this one: it is tried for as long as the coordinator is only away. Others
  // give up when another waits.
  bool last = false;
  // How storing on this node went. A shard that only the coordinator has counts as stored.
  absl::Status local;
};

// One thread. At most two shards are held: one being stored and one waiting. Where checkpoints are
// due faster than they are stored, all stages of a pipeline must choose the same ones without
// asking each other, or no checkpoint is ever whole: the one that waits is the one whose step is a
// multiple of the greatest power of two, the newer of two that are equal. Stages of different speed
// then agree on one at least in about twice the time that the slowest needs for one.
class ShardKeeper {
 public:
  static constexpr size_t kGivenUpMax = 64;
  // Called on the keeper's thread, once for each shard. OK: the coordinator has it. Aborted: it was
  // not tried, since others were due meanwhile; of more than kGivenUpMax during one upload only the
  // newest are told. Another status: the coordinator refused it (a full disk, say).
  using Callback = absl::AnyInvocable<void(const ShardTask&, const absl::Status&)>;

  ShardKeeper(std::string run, KeptShards local, RemoteStore& remote, Clock& clock,
              absl::Duration transfer_max, Callback callback);
  // A shard that waits is still stored, with one attempt at the coordinator; the owner cancels the
  // transfers first if that must not take long. Then it is on this node at least.
  ~ShardKeeper();

  // Never blocks. Of this shard and one that waits the other is given up; the run's last never is.
  void Put(ShardTask task);

 private:
  void Loop();
  absl::Status Upload(const ShardTask& task);
  // Whether to try again after `status`.
  bool Worthwhile(const ShardTask& task, const absl::Status& status);

  const std::string run_;
  KeptShards local_;
  RemoteStore& remote_;
  Clock& clock_;
  const absl::Duration transfer_max_;
  Callback callback_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ShardTask> waiting_;  // guarded by mutex_
  std::deque<ShardTask> given_up_;    // guarded by mutex_; at most kGivenUpMax, bytes dropped
  bool stopping_ = false;             // guarded by mutex_
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_SHARD_KEEPER_H_
