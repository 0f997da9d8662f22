#include "worker/exec/gradient_reducer.h"

#include "base/status_copy.h"

namespace longhaul::worker {

GradientReducer::GradientReducer(absl::Span<compute::StageGradient<float>> gradients,
                                 Collective& collective, Clock& clock)
    : gradients_(gradients),
      collective_(collective),
      clock_(clock),
      summed_(gradients.size()),
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
  deadline_ = deadline;
}

void GradientReducer::Final(int op) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (final_ < gradients_.size() && gradients_[gradients_.size() - 1 - final_].use.op >= op) {
    ++final_;
  }
  changed_.notify_all();
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
                     [this] { return stopping_ || (!Done() && summed_ < final_); });
    if (stopping_) return;
    const absl::Span<float> values = gradients_[gradients_.size() - 1 - summed_].values;
    const absl::Time deadline = deadline_;
    lock.unlock();
    const absl::Status status = collective_.AllReduceSum(values, deadline);
    lock.lock();
    if (status.ok()) {
      ++summed_;
    } else if (status_.ok()) {
      status_ = OwnCopy(status);
    }
    changed_.notify_all();
  }
}

}  // namespace longhaul::worker
