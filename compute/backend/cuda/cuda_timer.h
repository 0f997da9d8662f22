// Timers by CUDA's events.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_TIMER_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_TIMER_H_

#include <cuda_runtime.h>

#include <deque>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compute/backend/cuda/cuda_device.h"
#include "compute/backend/cuda/cuda_streams.h"
#include "compute/backend/streams.h"

namespace longhaul::compute {

// Times what is queued on one stream. Keeps two events for each pair that has not run yet.
class CudaTimer final : public DeviceTimer {
 public:
  // Of `events` with times. All three must outlive it.
  CudaTimer(const CudaDevice& device, EventPool& events, cudaStream_t stream)
      : device_(device), events_(events), stream_(stream) {}
  ~CudaTimer() override;
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  absl::Status Begin() override;
  absl::Status End() override;
  absl::StatusOr<absl::Duration> Take() override;

 private:
  struct Pair {
    cudaEvent_t begin, end;
  };
  absl::StatusOr<cudaEvent_t> Record();
  // Adds up the pairs that have run, the oldest first.
  absl::Status Collect();

  const CudaDevice& device_;
  EventPool& events_;
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;  // of a pair that has no end yet
  std::deque<Pair> pairs_;
  absl::Duration sum_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_TIMER_H_
