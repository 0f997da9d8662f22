#include "compute/backend/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace longhaul::compute {
namespace {

std::string DriverAndToolkit() {
  int driver = 0, toolkit = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&toolkit);
  if (driver == 0) return "no NVIDIA driver is loaded on this machine; install one, or use the CPU";
  if (driver >= toolkit) {
    return "its driver sees no card; `nvidia-smi -L` lists them, and CUDA_VISIBLE_DEVICES, if it "
           "is set, hides others; or use the CPU";
  }
  return absl::StrCat("the driver supports CUDA ", CudaVersionText(driver),
                      ", this build was made with CUDA ", CudaVersionText(toolkit),
                      "; install a newer driver, or use the CPU");
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string said =
      absl::StrCat(what, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(said);
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
      return absl::FailedPreconditionError(absl::StrCat(said, ": ", DriverAndToolkit()));
    case cudaErrorInvalidDevice:
      return absl::FailedPreconditionError(
          absl::StrCat(said, ": there is no such device; `nvidia-smi -L` lists those there are"));
    case cudaErrorNoKernelImageForDevice:
      return absl::FailedPreconditionError(absl::StrCat(
          said,
          ": this build has no code for the card; build with its compute capability in "
          "LONGHAUL_CUDA_ARCHITECTURES"));
    default:
      return absl::UnavailableError(said);
  }
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status CublasStatus(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string said = absl::StrCat(what, ": cuBLAS: ", cublasGetStatusString(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(said)
                                              : absl::UnavailableError(said);
}

}  // namespace longhaul::compute
