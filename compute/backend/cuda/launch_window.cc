#include "compute/backend/cuda/launch_window.h"

#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {

absl::Status LaunchWindow::Admit(cudaStream_t stream, int operations) {
  if (operations_ < kPartOperations) {
    operations_ += operations;
    return absl::OkStatus();
  }
  device_.Use();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  LH_RETURN_IF_ERROR(CudaStatus(cudaStreamIsCapturing(stream, &capture), device_.name()));
  if (capture != cudaStreamCaptureStatusNone) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(ends_[part_], MarkStream(device_, events_, stream));
  const size_t oldest = (part_ + 1) % kParts;
  if (ends_[oldest] != nullptr) {
    LH_RETURN_IF_ERROR(device_.WaitFor(*ends_[oldest], "what was queued on it long ago"));
    ends_[oldest] = nullptr;
  }
  part_ = oldest;
  operations_ = operations;
  return absl::OkStatus();
}

}  // namespace longhaul::compute
