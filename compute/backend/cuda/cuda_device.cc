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

absl::Status CudaDevice::Wait(absl::FunctionRef<absl::StatusOr<bool>()> reached,
                              absl::string_view what) {
  const absl::Time deadline = hangs_ ? absl::InfinitePast() : clock_.Now() + wait_max_;
  const absl::Status status =
      WaitUntilReached(reached, clock_, deadline, absl::StrCat(name(), " hangs: ", what));
  if (absl::IsDeadlineExceeded(status)) hangs_ = true;
  return status;
}

}  // namespace longhaul::compute
