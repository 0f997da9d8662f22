#include "worker/exec/gradient_reducer.h"

#include <utility>

#include "base/status_copy.h"
#include "base/status_macros.h"

namespace longhaul::worker {

GradientReducer::GradientReducer(compute::Stage<float>& stage, Collective& collective, Clock& clock)
    : backend_(stage.backend()),
      gradients_(stage.gradients()),
      collective_(collective),
      clock_(clock),
      summed_(gradients_.size()),
      thread_([this] { Run(); }) {}

GradientReducer::~GradientReducer() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    // A peer that waits for the rest of a step that failed here must not keep the thread.
    if (!Done()) collective_.Cancel(absl::CancelledError("the step was given up"));
    changed_.notify_all();
  }
  thread_.join();
}

void GradientReducer::Begin(absl::Time deadline) {
  std::lock_guard<std::mutex> lock(mutex_);
  final_ = summed_ = 0;
  ready_.clear();
  deadline_ = deadline;
}

absl::Status GradientReducer::Final(int op) {
  size_t count = final_;
  while (count < gradients_.size() && gradients_[gradients_.size() - 1 - count].use.op >= op) {
    ++count;
  }
  if (count == final_) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(std::unique_ptr<compute::Mark> mark, backend_.MarkNow());
  std::lock_guard<std::mutex> lock(mutex_);
  final_ = count;
  ready_.push_back({count, std::move(mark)});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status GradientReducer::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  // The thread ends each sum by its deadline.
  clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(), [this] { return Done(); });
  return OwnCopy(status_);
}

void GradientReducer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(),
                     [this] { return stopping_ || (!Done() && !ready_.empty()); });
    if (stopping_) return;
    const Ready ready = std::move(ready_.front());
    ready_.pop_front();
    const absl::Status status = SumUpTo(ready, lock);
    if (!status.ok() && status_.ok()) status_ = OwnCopy(status);
    changed_.notify_all();
  }
}

absl::Status GradientReducer::SumUpTo(const Ready& ready, std::unique_lock<std::mutex>& lock) {
  const absl::Time deadline = deadline_;
  lock.unlock();
  absl::Status status =
      compute::WaitFor(*ready.mark, clock_, clock_.Now() + compute::kDeviceWaitMax, "backward");
  for (size_t i = summed_; status.ok() && i < ready.count; ++i) {
    status = collective_.AllReduceSum(gradients_[gradients_.size() - 1 - i].values, deadline);
  }
  lock.lock();
  if (status.ok()) summed_ = ready.count;
  return status;
}

}  // namespace longhaul::worker
