#include "compute/backend/cuda/cuda_device.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {

std::string CudaDevice::name() const { return absl::StrCat("CUDA device ", index_); }

absl::Status CudaDevice::WaitFor(cudaStream_t stream) {
  const auto is_done = [&]() -> absl::StatusOr<bool> {
    Use();
    const cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaErrorNotReady) return false;
    LH_RETURN_IF_ERROR(CudaStatus(error, name()));
    return true;
  };
  return Wait(is_done, "what is queued on it");
}

absl::Status CudaDevice::WaitFor(Mark& mark, absl::string_view what) {
  return Wait([&] { return mark.Reached(); }, what);
}

absl::StatusOr<cudaStream_t> CudaDevice::MakeStream() {
  Use();
  cudaStream_t stream = nullptr;
  LH_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                absl::StrCat(name(), ": a stream")));
  std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return stream;
}

void CudaDevice::Destroy(cudaStream_t stream) {
  WaitFor(stream).IgnoreError();
  if (hangs_) return;
  std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
  cudaStreamDestroy(stream);
}

bool CudaDevice::WaitForAll() {
  std::lock_guard lock(mutex_);
  // An error is none of a wait: nothing runs any more.
  for (const cudaStream_t stream : streams_) WaitFor(stream).IgnoreError();
  return !hangs_;
}

absl::Status CudaDevice::Wait(absl::FunctionRef<absl::StatusOr<bool>()> reached,
                              absl::string_view what) {
  const absl::Time deadline = hangs_ ? absl::InfinitePast() : clock_.Now() + wait_max_;
  const absl::Status status =
      WaitUntilReached(reached, clock_, deadline, absl::StrCat(name(), " hangs: ", what));
  if (absl::IsDeadlineExceeded(status)) hangs_ = true;
  return status;
}

}  // namespace longhaul::compute
