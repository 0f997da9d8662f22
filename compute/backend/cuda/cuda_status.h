// What CUDA and cuBLAS say, as a Status.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STATUS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STATUS_H_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace longhaul::compute {

// `what` says what was tried. ResourceExhausted without memory; FailedPrecondition where driver,
// card or build do not fit together, with what to do; Unavailable for whatever else goes wrong on a
// device, which then is of no use to this process any more.
absl::Status CudaStatus(cudaError_t error, absl::string_view what);
// "13.0" of 13000, as CUDA counts its versions.
std::string CudaVersionText(int version);
absl::Status CublasStatus(cublasStatus_t status, absl::string_view what);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_STATUS_H_
