// Sums and maxima over the threads of a block, in an order that depends on its size only. For
// device code.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_BLOCK_REDUCE_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_BLOCK_REDUCE_CUH_

#include <cuda_runtime.h>

namespace longhaul::compute::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffff;

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// Not a number if one of them is none.
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

template <typename T, typename Combine>
__device__ T WarpReduce(T value, Combine combine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, lanes));
  }
  return value;
}

// The same value in every thread. All kThreads threads of a one-dimensional block must call it.
template <int kThreads, typename T, typename Combine>
__device__ T BlockReduce(T value, Combine combine) {
  static_assert(kThreads % kWarp == 0 && kThreads <= kWarp * kWarp);
  constexpr int kWarps = kThreads / kWarp;
  __shared__ T of_warps[kWarps];
  value = WarpReduce(value, combine);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  T all = of_warps[0];
  for (int warp = 1; warp < kWarps; ++warp) all = combine(all, of_warps[warp]);
  __syncthreads();  // before the next call writes
  return all;
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_BLOCK_REDUCE_CUH_
