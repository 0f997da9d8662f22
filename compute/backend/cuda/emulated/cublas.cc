#include <memory>
#include <vector>

#include "compute/backend/cuda/emulated/cublas_v2.h"
#include "compute/backend/cuda/emulated/state.h"
#include "compute/backend/element.h"

struct EmulatedCublas {
  cudaStream_t stream = nullptr;
};

namespace {

using longhaul::compute::emulated::Call;

// Those of devices that hang are there when the process ends.
std::vector<std::unique_ptr<EmulatedCublas>>& Handles() {
  static auto& handles = *new std::vector<std::unique_ptr<EmulatedCublas>>;
  return handles;
}

template <typename T, typename W, typename Result>
void Multiply(cublasOperation_t a_op, cublasOperation_t b_op, int m, int n, int k, W alpha,
              const T* a, int64_t a_stride, const T* b, int64_t b_stride, W beta, Result* c,
              int64_t c_stride) {
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const T left = a[a_op == CUBLAS_OP_N ? i * a_stride + row : row * a_stride + i];
        const T right = b[b_op == CUBLAS_OP_N ? column * b_stride + i : i * b_stride + column];
        sum += static_cast<double>(left) * static_cast<double>(right);
      }
      Result& result = c[column * c_stride + row];
      result =
          static_cast<Result>(static_cast<W>(alpha * sum + (beta == W{0} ? 0 : beta * result)));
    }
  }
}

template <typename T, typename W, typename Result>
cublasStatus_t Queue(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                     int n, int k, const W* alpha, const T* a, int a_stride, const T* b,
                     int b_stride, const W* beta, Result* c, int c_stride) {
  longhaul::compute::emulated::Queue(handle->stream, [=, alpha = *alpha, beta = *beta] {
    Multiply(a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const char* cublasGetStatusString(cublasStatus_t) { return "emulated"; }
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  const Call call;
  Handles().push_back(std::make_unique<EmulatedCublas>());
  *handle = Handles().back().get();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  const Call call;
  std::erase_if(Handles(), [&](const auto& held) { return held.get() == handle; });
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                           int m, int n, int k, const float* alpha, const float* a, int a_stride,
                           const float* b, int b_stride, const float* beta, float* c,
                           int c_stride) {
  return Queue(handle, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                           int m, int n, int k, const double* alpha, const double* a, int a_stride,
                           const double* b, int b_stride, const double* beta, double* c,
                           int c_stride) {
  return Queue(handle, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType_t a_type, int a_stride, const void* b,
                            cudaDataType_t b_type, int b_stride, const void* beta, void* c,
                            cudaDataType_t c_type, int c_stride, cublasComputeType_t,
                            cublasGemmAlgo_t) {
  using longhaul::compute::BFloat16;
  if (a_type != CUDA_R_16BF || b_type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto multiply = [&](auto* result) {
    return Queue(handle, a_op, b_op, m, n, k, static_cast<const float*>(alpha),
                 static_cast<const BFloat16*>(a), a_stride, static_cast<const BFloat16*>(b),
                 b_stride, static_cast<const float*>(beta), result, c_stride);
  };
  if (c_type == CUDA_R_16BF) return multiply(static_cast<BFloat16*>(c));
  return c_type == CUDA_R_32F ? multiply(static_cast<float*>(c)) : CUBLAS_STATUS_NOT_SUPPORTED;
}
