// Sums a stage's gradients over its replicas while backward still computes the earlier ones.
#ifndef LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_
#define LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_

#include <condition_variable>
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
  // `gradients` are Stage::gradients(). Everything outlives the object.
  GradientReducer(absl::Span<compute::StageGradient<float>> gradients, Collective& collective,
                  Clock& clock);
  // Cancels the collective if a sum is still under way.
  ~GradientReducer();

  // A step's gradients begin; each sum may take until `deadline` once it has begun.
  void Begin(absl::Time deadline);
  // The accumulators of uses by operators from `op` on are final.
  void Final(int op);
  // Waits until all are summed; the first error, which names the peer.
  absl::Status Finish();

 private:
  void Run();
  bool Done() const { return summed_ == gradients_.size() || !status_.ok(); }

  const absl::Span<compute::StageGradient<float>> gradients_;
  Collective& collective_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_; both count from the last accumulator down.
  size_t final_ = 0, summed_ = 0;
  absl::Time deadline_;
  absl::Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_GRADIENT_REDUCER_H_
