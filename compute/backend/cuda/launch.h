// How kernels are launched, and the loops that most of them are.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/cuda_status.h"

// Before a loop whose variable indexes an array, so that the array lies in registers.
#ifdef __CUDACC__
#define LONGHAUL_UNROLL _Pragma("unroll")
#else
#define LONGHAUL_UNROLL
#endif

namespace longhaul::compute::cuda {

struct LaunchShape {
  dim3 grid, block;
};

// Queues kernel(arguments...) on the backend's stream. `name` is for messages.
template <typename... Parameters, typename... Arguments>
absl::Status Launch(CudaBackend& backend, const char* name, const LaunchShape& shape,
                    void (*kernel)(Parameters...), Arguments... arguments) {
  LH_RETURN_IF_ERROR(backend.Admit());
#ifdef __CUDACC__
  kernel<<<shape.grid, shape.block, 0, backend.stream()>>>(static_cast<Parameters>(arguments)...);
#else
  emulated::Launch(
      backend.stream(), shape.grid, shape.block,
      [kernel, values = std::tuple<Parameters...>(static_cast<Parameters>(arguments)...)] {
        std::apply(kernel, values);
      });
#endif
  return CudaStatus(cudaGetLastError(), name);
}

inline constexpr int kForEachThreads = 256;
// Enough blocks to fill the largest card a few times; threads take several elements where there are
// more.
inline constexpr int64_t kForEachBlocksMax = 4096;

template <typename Body>
__global__ void ForEachKernel(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

// Calls body(i) on the device for every i in [0, n), in any order.
template <typename Body>
absl::Status ForEach(CudaBackend& backend, const char* name, int64_t n, const Body& body) {
  if (n == 0) return absl::OkStatus();
  const int64_t blocks = (n + kForEachThreads - 1) / kForEachThreads;
  return Launch(backend, name,
                {static_cast<unsigned>(std::min(blocks, kForEachBlocksMax)), kForEachThreads},
                ForEachKernel<Body>, n, body);
}

inline constexpr int kRowThreadsMax = 256;

template <typename Body>
__global__ void ForEachOfRowsKernel(int items, Body body) {
  for (int item = static_cast<int>(threadIdx.x); item < items; item += blockDim.x) {
    body(int64_t{blockIdx.x}, item);
  }
}

// Calls body(row, item) on the device for every row in [0, rows) and item in [0, items), in any
// order; a block for each row.
template <typename Body>
absl::Status ForEachOfRows(CudaBackend& backend, const char* name, int64_t rows, int64_t items,
                           const Body& body) {
  if (rows == 0 || items == 0) return absl::OkStatus();
  const int64_t threads = std::min<int64_t>((items + 31) / 32 * 32, kRowThreadsMax);
  return Launch(backend, name, {static_cast<unsigned>(rows), static_cast<unsigned>(threads)},
                ForEachOfRowsKernel<Body>, static_cast<int>(items), body);
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_LAUNCH_H_
