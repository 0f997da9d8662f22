// Sums over the rows of a matrix, as gradients of biases and of norms' weights are, in an order
// that depends on its shape only. For .cu files.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/pack.cuh"

namespace longhaul::compute::cuda {

inline constexpr int64_t kSumRows = 128;       // that one block adds, unless there are more parts
inline constexpr int64_t kSumPartsMax = 1024;  // than these
inline constexpr int kSumLanes = 8;            // rows that a block adds side by side
inline constexpr int kPartLanes = 16;          // parts that a block adds side by side

// Sums of W that lie in two vectors, the second after `first_columns`; or in one.
template <typename W>
struct SumsAt {
  W* first;
  int64_t first_columns;
  W* second = nullptr;
  __device__ W& operator()(int64_t column) const {
    return column < first_columns ? first[column] : second[column - first_columns];
  }
};

// Adds the rows of partial [parts, columns] to the sums: lane l adds parts l, l + kPartLanes, ...,
// then the lanes are added in order.
template <typename W>
__global__ void AddPartsKernel(int64_t parts, int64_t columns, const W* partial, SumsAt<W> sums) {
  __shared__ W lanes[kPartLanes][kWarp];
  const int64_t column = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  W sum = 0;
  if (column < columns) {
    for (int64_t part = threadIdx.y; part < parts; part += kPartLanes) {
      sum += partial[part * columns + column];
    }
  }
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int lane = 1; lane < kPartLanes; ++lane) sum += lanes[lane][threadIdx.x];
  sums(column) += sum;
}
template <typename W>
absl::Status AddParts(CudaBackend& backend, const char* name, int64_t parts, int64_t columns,
                      const W* partial, const SumsAt<W>& sums) {
  return Launch(backend, name,
                {static_cast<unsigned>((columns + kWarp - 1) / kWarp), dim3(kWarp, kPartLanes)},
                AddPartsKernel<W>, parts, columns, partial, sums);
}

// partial [parts, columns]: of `part_rows` rows each; lane l adds the rows l, l + kSumLanes, ... of
// its part, then the lanes are added in order.
template <typename T>
__global__ void PartialColumnSumsKernel(int64_t rows, int64_t columns, int64_t part_rows,
                                        int64_t pitch, const T* values, Wide<T>* partial) {
  constexpr int kCount = kPack<T>, kColumns = kWarp * kCount;
  __shared__ Wide<T> lanes[kSumLanes][kColumns];
  const int64_t first = int64_t{blockIdx.x} * kColumns, at = first + threadIdx.x * kCount;
  const int64_t begin = int64_t{blockIdx.y} * part_rows;
  const int64_t end = begin + part_rows < rows ? begin + part_rows : rows;
  Wide<T> sums[kCount] = {};
  if (at < columns) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kSumLanes) {
      Wide<T> of_row[kCount];
      Load(values + row * pitch, at, columns, of_row);
      LONGHAUL_UNROLL
      for (int k = 0; k < kCount; ++k) sums[k] += of_row[k];
    }
  }
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) lanes[threadIdx.y][threadIdx.x * kCount + k] = sums[k];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.y * kWarp + threadIdx.x); i < kColumns;
       i += kWarp * kSumLanes) {
    Wide<T> sum = lanes[0][i];
    for (int lane = 1; lane < kSumLanes; ++lane) sum += lanes[lane][i];
    if (first + i < columns) partial[blockIdx.y * columns + first + i] = sum;
  }
}

// Values [rows, columns]; `pitch`: elements from one row to the next.
template <typename T>
struct Matrix {
  int64_t rows, columns, pitch;
  const T* values;
};

// Adds to sums [columns] the sums over the rows of the matrix. Uses the backend's scratch memory.
template <typename T>
absl::Status AddColumnSums(CudaBackend& backend, const char* name, const Matrix<T>& matrix,
                           Wide<T>* sums) {
  const int64_t rows = matrix.rows, columns = matrix.columns;
  const int64_t part_rows = std::max(kSumRows, (rows + kSumPartsMax - 1) / kSumPartsMax);
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  constexpr int64_t kColumns = kWarp * kPack<T>;
  LH_ASSIGN_OR_RETURN(Wide<T>* const partial, backend.ScratchOf<Wide<T>>(parts * columns));
  const dim3 grid(static_cast<unsigned>((columns + kColumns - 1) / kColumns),
                  static_cast<unsigned>(parts));
  LH_RETURN_IF_ERROR(Launch(backend, name, {grid, dim3(kWarp, kSumLanes)},
                            PartialColumnSumsKernel<T>, rows, columns, part_rows, matrix.pitch,
                            matrix.values, partial));
  return AddParts<Wide<T>>(backend, name, parts, columns, partial, {sums, columns});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_COLUMN_SUMS_CUH_
