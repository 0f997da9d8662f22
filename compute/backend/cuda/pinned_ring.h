// Pinned memory that uploads pass through, so that their callers need not wait for the copies.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_PINNED_RING_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_PINNED_RING_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/cuda_device.h"
#include "compute/backend/cuda/cuda_streams.h"

namespace longhaul::compute {

// Segments that are filled one after the other, each of them anew once the device has read it. The
// caller waits only if the device is a whole ring behind. One thread at a time.
class PinnedRing {
 public:
  // Uploads on `stream`. All three must outlive it, and the stream be done with it.
  static absl::StatusOr<std::unique_ptr<PinnedRing>> Make(CudaDevice& device, EventPool& events,
                                                          cudaStream_t stream);

  // Queues a copy of host memory, which is the caller's again when it returns.
  absl::Status Upload(void* to, const void* from, size_t bytes);

  static constexpr size_t kSegments = 8;
  static constexpr size_t kSegmentBytes = size_t{1} << 20;

 private:
  PinnedRing(CudaDevice& device, EventPool& events, cudaStream_t stream)
      : device_(device), events_(events), stream_(stream) {}
  // Marks the segment as full, and waits until the device has read the next one.
  absl::Status Turn();

  CudaDevice& device_;
  EventPool& events_;
  const cudaStream_t stream_;
  std::unique_ptr<Buffer> memory_;
  std::array<std::unique_ptr<Mark>, kSegments> read_;  // null where nothing is under way
  size_t segment_ = 0;
  size_t filled_ = 0;  // bytes of the segment
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_PINNED_RING_H_
