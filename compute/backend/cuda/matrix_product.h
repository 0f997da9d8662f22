// Matrix products through cuBLAS.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/operand.h"

namespace longhaul::compute::cuda {

// Rows one after the other: c [rows, columns] = a [rows, inner] b [inner, columns], or += with
// `add`. Summed in Wide<T>; Result is T or Wide<T>. InvalidArgument if an extent does not fit
// cuBLAS's int.
template <typename T, typename Result>
absl::Status Multiply(CudaBackend& backend, int64_t rows, int64_t columns, int64_t inner,
                      const Operand<T>& a, const Operand<T>& b, bool add, Result* c);

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_
