// Matrix products through cuBLAS.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/operand.h"

namespace longhaul::compute::cuda {

// c [rows, columns] = a [rows, inner] b [inner, columns], or += with `add`. Result is T or Wide<T>.
template <typename T, typename Result>
struct Product {
  int64_t rows = 0, columns = 0, inner = 0;
  Operand<T> a, b;
  Result* c = nullptr;
  bool add = false;
  // Elements from one row of a, as it is stored, and of c to the next; 0: they lie one after the
  // other, as b's do.
  int64_t a_pitch = 0, c_pitch = 0;
};

// Summed in Wide<T>. InvalidArgument if an extent does not fit cuBLAS's int.
template <typename T, typename Result>
absl::Status Multiply(CudaBackend& backend, const Product<T, Result>& product);

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_MATRIX_PRODUCT_H_
