// The part of cuBLAS that Longhaul uses, by plain loops; see cuda_runtime.h beside it.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUBLAS_V2_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUBLAS_V2_H_

#include "compute/backend/cuda/emulated/cuda_runtime.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
using cublasHandle_t = struct EmulatedCublas*;

const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes);
// Column-major: c = alpha op(a) op(b) + beta c. c is not read where beta is 0.
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                           int m, int n, int k, const float* alpha, const float* a, int a_stride,
                           const float* b, int b_stride, const float* beta, float* c, int c_stride);
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                           int m, int n, int k, const double* alpha, const double* a, int a_stride,
                           const double* b, int b_stride, const double* beta, double* c,
                           int c_stride);
// Only of bfloat16 matrices with sums in floats; c is of bfloat16 or of floats.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType_t a_type, int a_stride, const void* b,
                            cudaDataType_t b_type, int b_stride, const void* beta, void* c,
                            cudaDataType_t c_type, int c_stride, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUBLAS_V2_H_
