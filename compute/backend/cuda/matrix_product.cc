#include "compute/backend/cuda/matrix_product.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute::cuda {
namespace {

cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                    int n, int k, const float* alpha, const float* a, int a_stride, const float* b,
                    int b_stride, const float* beta, float* c, int c_stride) {
  return cublasSgemm(handle, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c,
                     c_stride);
}
cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                    int n, int k, const double* alpha, const double* a, int a_stride,
                    const double* b, int b_stride, const double* beta, double* c, int c_stride) {
  return cublasDgemm(handle, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c,
                     c_stride);
}

template <typename Result>
cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                    int n, int k, const float* alpha, const BFloat16* a, int a_stride,
                    const BFloat16* b, int b_stride, const float* beta, Result* c, int c_stride) {
  constexpr cudaDataType_t kResult = std::is_same_v<Result, BFloat16> ? CUDA_R_16BF : CUDA_R_32F;
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_16BF, a_stride, b, CUDA_R_16BF,
                      b_stride, beta, c, kResult, c_stride, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

cublasOperation_t Op(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

// cuBLAS counts columns one after the other, so it sees the transposes of our matrices and computes
// c^T = b^T a^T.
template <typename T, typename Result>
absl::Status Multiply(CudaBackend& backend, const Product<T, Result>& product) {
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  const auto& [rows, columns, inner, a, b, c, add, a_pitch, c_pitch] = product;
  if (std::max({rows, columns, inner, a_pitch, c_pitch}) > kMax) {
    return absl::InvalidArgumentError(absl::StrCat("a product of ", rows, " x ", inner, " and ",
                                                   inner, " x ", columns,
                                                   " is larger than cuBLAS takes"));
  }
  const Wide<T> one = 1, beta = add ? 1 : 0;
  const int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(inner);
  const auto stride = [](int64_t pitch, int width) {
    return pitch == 0 ? width : static_cast<int>(pitch);
  };
  LH_RETURN_IF_ERROR(backend.Admit());
  backend.MakeCurrent();
  return CublasStatus(Gemm(backend.cublas(), Op(b.transposed), Op(a.transposed), m, n, k, &one,
                           b.values, b.transposed ? k : m, a.values,
                           stride(a_pitch, a.transposed ? n : k), &beta, c, stride(c_pitch, m)),
                      "matrix product");
}

#define LONGHAUL_INSTANTIATE(T, Result) \
  template absl::Status Multiply<T, Result>(CudaBackend&, const Product<T, Result>&);
LONGHAUL_INSTANTIATE(float, float)
LONGHAUL_INSTANTIATE(double, double)
LONGHAUL_INSTANTIATE(BFloat16, BFloat16)
LONGHAUL_INSTANTIATE(BFloat16, float)

}  // namespace longhaul::compute::cuda
