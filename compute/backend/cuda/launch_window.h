// A bound on how far the host runs ahead of a card.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_WINDOW_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_WINDOW_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "compute/backend/cuda/cuda_device.h"
#include "compute/backend/cuda/cuda_streams.h"

namespace longhaul::compute {

// CUDA takes about 1024 operations ahead; the next call then waits inside of it, on a card that
// hangs without end. So the wait is here, before that, and has a deadline. One thread at a time.
class LaunchWindow {
 public:
  // Both must outlive it.
  LaunchWindow(CudaDevice& device, EventPool& events) : device_(device), events_(events) {}

  // To be called before so many operations are queued on the stream; a graph counts as a part.
  // While the stream is being captured there is no wait: what is captured does not run.
  absl::Status Admit(cudaStream_t stream, int operations);

  static constexpr int kParts = 4;
  static constexpr int kPartOperations = 128;

 private:
  CudaDevice& device_;
  EventPool& events_;
  std::array<std::unique_ptr<Mark>, kParts> ends_;  // of the latest parts
  size_t part_ = 0;
  int operations_ = 0;  // of the part
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_WINDOW_H_
