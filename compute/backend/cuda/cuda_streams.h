// Marks and copy streams by CUDA's events and streams.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STREAMS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STREAMS_H_

#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/backend/cuda/cuda_device.h"
#include "compute/backend/streams.h"

namespace longhaul::compute {

// Owns events and lends them: after the first steps no new ones are made. Thread-safe; must outlive
// what it lends.
class EventPool {
 public:
  // `flags`: CUDA's, of all its events.
  EventPool(const CudaDevice& device, unsigned flags) : device_(device), flags_(flags) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // Makes so many now, of which none is lent.
  absl::Status Reserve(size_t events);
  absl::StatusOr<cudaEvent_t> Take();
  // The event may be under way: what waits for it on the device keeps the point it waits for.
  void GiveBack(cudaEvent_t event);

 private:
  absl::StatusOr<cudaEvent_t> Make();  // with the mutex held

  const CudaDevice& device_;
  const unsigned flags_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
  size_t made_ = 0;
};

// The point now in `stream`, of the calling thread's current device.
absl::StatusOr<std::unique_ptr<Mark>> MarkStream(CudaDevice& device, EventPool& events,
                                                 cudaStream_t stream);

// What is queued on `stream` from now on waits for the mark, which a CUDA backend must have made.
absl::Status LetStreamWait(const CudaDevice& device, cudaStream_t stream, const Mark& mark);

// Both must outlive it.
absl::StatusOr<std::unique_ptr<CopyStream>> MakeCudaCopyStream(CudaDevice& device,
                                                               EventPool& events);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STREAMS_H_
