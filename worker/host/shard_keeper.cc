#include "worker/host/shard_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "checkpoint/roundness.h"

namespace longhaul::worker {
namespace {

constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

ShardKeeper::ShardKeeper(std::string run, KeptShards local, RemoteStore& remote, Clock& clock,
                         absl::Duration transfer_max, Callback callback)
    : run_(std::move(run)),
      local_(std::move(local)),
      remote_(remote),
      clock_(clock),
      transfer_max_(transfer_max),
      callback_(std::move(callback)),
      thread_([this] { Loop(); }) {}

ShardKeeper::~ShardKeeper() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ShardKeeper::Put(ShardTask task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.has_value()) {
    LH_CHECK(!waiting_->last, "a shard after the run's last");
    const bool stays =
        !task.last && checkpoint::Roundness(waiting_->step) > checkpoint::Roundness(task.step);
    ShardTask& other = stays ? task : *waiting_;
    other.shard.bytes.clear();
    given_up_.push_back(std::move(other));
    if (given_up_.size() > kGivenUpMax) given_up_.pop_front();
    if (stays) return;
  }
  waiting_ = std::move(task);
  changed_.notify_all();
}

void ShardKeeper::Loop() {
  while (true) {
    std::optional<ShardTask> task;
    std::deque<ShardTask> given_up;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(),
                       [this] { return stopping_ || waiting_.has_value(); });
      given_up.swap(given_up_);
      task = std::exchange(waiting_, std::nullopt);
      if (stopping_ && !task.has_value()) return;
    }
    for (const ShardTask& old : given_up) {
      callback_(old, absl::AbortedError("checkpoints are due faster than they are stored"));
    }
    // On this node also when there is no time for more.
    task->local = local_.Put(run_, task->step, task->shard.shard.sha256, task->shard.bytes);
    absl::Status status = Upload(*task);
    while (!status.ok() && Worthwhile(*task, status)) status = Upload(*task);
    callback_(*task, status);
  }
}

absl::Status ShardKeeper::Upload(const ShardTask& task) {
  return Annotate(
      remote_.StoreShard(task.shard.shard.sha256, task.shard.bytes, clock_.Now() + transfer_max_),
      "at the coordinator");
}

bool ShardKeeper::Worthwhile(const ShardTask& task, const absl::Status& status) {
  const bool temporary = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!temporary) return false;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto overtaken = [&] { return stopping_ || (!task.last && waiting_.has_value()); };
  clock_.WaitUntil(lock, changed_, clock_.Now() + kRetryAfter, overtaken);
  return !overtaken();
}

}  // namespace longhaul::worker
