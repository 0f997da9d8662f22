// Sums over the rows of a matrix, as gradients of biases and of norms' weights are, in an order
// that depends on the number of rows only. For .cu files.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_

#include "base/status_macros.h"
#include "compute/backend/cuda/launch.h"

namespace longhaul::compute::cuda {

inline constexpr int kSumColumns = 32;    // of a block
inline constexpr int kSumLanes = 8;       // rows that a block adds side by side
inline constexpr int64_t kSumRows = 512;  // that one block adds

// partial [parts, columns]: of kSumRows rows each; lane l adds the rows l, l + kSumLanes, ... of
// its part, then the lanes are added in order.
template <typename T, typename Values>
__global__ void PartialColumnSumsKernel(int64_t rows, int64_t columns, Values values, T* partial) {
  __shared__ T lanes[kSumLanes][kSumColumns];
  const int64_t column = int64_t{blockIdx.x} * kSumColumns + threadIdx.x;
  const int64_t begin = int64_t{blockIdx.y} * kSumRows;
  const int64_t end = begin + kSumRows < rows ? begin + kSumRows : rows;
  T sum = 0;
  if (column < columns) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kSumLanes) sum += values(row, column);
  }
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int lane = 1; lane < kSumLanes; ++lane) sum += lanes[lane][threadIdx.x];
  partial[blockIdx.y * columns + column] = sum;
}

template <typename T>
struct AddParts {
  int64_t parts, columns;
  const T* partial;
  T* sums;
  __device__ void operator()(int64_t column) const {
    T sum = partial[column];
    for (int64_t part = 1; part < parts; ++part) sum += partial[part * columns + column];
    sums[column] += sum;
  }
};

// The elements of a matrix as they are, for AddColumnSums.
template <typename T>
struct MatrixAt {
  int64_t columns;
  const T* values;
  __device__ T operator()(int64_t row, int64_t column) const {
    return values[row * columns + column];
  }
};

// Adds to sums [columns] the sums over rows of values(row, column), which device code can call.
// Uses the backend's scratch memory.
template <typename T, typename Values>
absl::Status AddColumnSums(CudaBackend& backend, const char* name, int64_t rows, int64_t columns,
                           const Values& values, T* sums) {
  const int64_t parts = (rows + kSumRows - 1) / kSumRows;
  LH_ASSIGN_OR_RETURN(T* const partial, backend.ScratchOf<T>(parts * columns));
  const dim3 grid(static_cast<unsigned>((columns + kSumColumns - 1) / kSumColumns),
                  static_cast<unsigned>(parts));
  LH_RETURN_IF_ERROR(Launch(backend, name, {grid, dim3(kSumColumns, kSumLanes)},
                            PartialColumnSumsKernel<T, Values>, rows, columns, values, partial));
  return ForEach(backend, name, columns, AddParts<T>{parts, columns, partial, sums});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_
