// Sums a stage's gradients over its replicas while backward still computes the earlier ones.
#ifndef LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_
#define LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "compute/stage/stage.h"
#include "worker/comm/collective.h"

namespace longhaul::worker {

// Accumulators are summed one after another, those of the last operators first: the same order on
// every replica, whenever each of them hands them over. Begin, Final and Finish are for the
// executor's thread, which must not use the collective or a final accumulator between the first
// Final of a step and Finish. Owns a thread.
class GradientReducer {
 public:
  // `collective` takes memory of the stage's device. Everything outlives the object.
  GradientReducer(compute::Stage<float>& stage, Collective& collective, Clock& clock);
  // Cancels the collective if a sum is still under way.
  ~GradientReducer();

  // A step's gradients begin; each sum may take until `deadline` once it has begun.
  void Begin(absl::Time deadline);
  // The accumulators of uses by operators from `op` on are final once the device has done what it
  // was given so far.
  absl::Status Final(int op);
  // Waits until all are summed; the first error, which names the peer.
  absl::Status Finish();

 private:
  // Accumulators that are final once the device is there, from the last one down to `count`.
  struct Ready {
    size_t count;
    std::unique_ptr<compute::Mark> mark;
  };

  void Run();
  // Sums accumulators up to ready.count; gives `lock` up meanwhile.
  absl::Status SumUpTo(const Ready& ready, std::unique_lock<std::mutex>& lock);
  bool Done() const { return summed_ == gradients_.size() || !status_.ok(); }

  compute::Backend& backend_;
  const absl::Span<compute::StageGradient<float>> gradients_;
  Collective& collective_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Both count from the last accumulator down.
  size_t final_ = 0;         // of the executor's thread
  size_t summed_ = 0;        // guarded by mutex_, as all below
  std::deque<Ready> ready_;  // that are not summed yet
  absl::Time deadline_;
  absl::Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_
