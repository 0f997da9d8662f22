// Sums in double over everything, in an order that depends on the number of terms only. For .cu
// files.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_TOTAL_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_TOTAL_CUH_

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/launch.h"

namespace longhaul::compute::cuda {

inline constexpr int kTotalThreads = 256;
inline constexpr int64_t kTotalBlocksMax = 1024;

template <typename Values>
__global__ void PartialTotalsKernel(int64_t n, Values values, double* totals) {
  double sum = 0;
  const int64_t step = int64_t{gridDim.x} * kTotalThreads;
  for (int64_t i = int64_t{blockIdx.x} * kTotalThreads + threadIdx.x; i < n; i += step) {
    sum += values(i);
  }
  sum = BlockReduce<kTotalThreads>(sum, Sum{});
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// Terms that lie in device memory, for Total.
struct TermsAt {
  const double* terms;
  __device__ double operator()(int64_t i) const { return terms[i]; }
};

// *total, in host memory, gets the sum of values(i) for i in [0, n) when the backend has been
// synchronised. `scratch` has ScratchOfTotal() doubles of device memory.
inline constexpr int64_t ScratchOfTotal() { return kTotalBlocksMax + 1; }
template <typename Values>
absl::Status Total(CudaBackend& backend, const char* name, int64_t n, const Values& values,
                   double* scratch, double* total) {
  const int64_t blocks =
      std::min(kTotalBlocksMax, std::max<int64_t>(1, (n + kTotalThreads - 1) / kTotalThreads));
  LH_RETURN_IF_ERROR(Launch(backend, name, {static_cast<unsigned>(blocks), kTotalThreads},
                            PartialTotalsKernel<Values>, n, values, scratch + 1));
  LH_RETURN_IF_ERROR(Launch(backend, name, {1, kTotalThreads}, PartialTotalsKernel<TermsAt>, blocks,
                            TermsAt{scratch + 1}, scratch));
  return backend.Return(scratch, total);
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_TOTAL_CUH_
