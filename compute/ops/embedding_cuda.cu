#include "base/status_macros.h"
#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/embedding.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct EmbedAt {
  static constexpr int kCount = cuda::kPack<T>;
  EmbeddingShape shape;
  const int32_t* tokens;
  const T* table;
  const T* positions;  // or null
  T* output;
  __device__ void operator()(int64_t row, int pack) const {
    const int64_t at = int64_t{pack} * kCount, width = shape.width;
    Wide<T> values[kCount], added[kCount] = {};
    cuda::Load(table + tokens[row] * width, at, width, values);
    if (positions != nullptr) {
      cuda::Load(positions + row % shape.context * width, at, width, added);
    }
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) values[k] += added[k];
    cuda::Store(values, output + row * width, at, width);
  }
};

constexpr int kThreads = 256;

// sum [width] += the gradients of the rows that are listed, in order; -1 ends the list.
template <typename T>
__device__ void AddRows(const int (&listed)[kThreads], const T* output_gradient, int64_t width,
                        Wide<T>* sum) {
  constexpr int kCount = cuda::kPack<T>;
  for (int64_t at = threadIdx.x * kCount; at < width; at += kThreads * kCount) {
    Wide<T> sums[kCount];
    cuda::Load(sum, at, width, sums);
    for (int i = 0; i < kThreads && listed[i] >= 0; ++i) {
      Wide<T> gradient[kCount];
      cuda::Load(output_gradient + listed[i] * width, at, width, gradient);
      LONGHAUL_UNROLL
      for (int k = 0; k < kCount; ++k) sums[k] += gradient[k];
    }
    cuda::Store(sums, sum, at, width);
  }
}

// A block for each row. The block of the first row with a token adds the gradients of all rows with
// it, in order; the others have nothing to do. So no two blocks write to one place, and a token's
// sum does not depend on which block runs when.
template <typename T>
__global__ void TableGradientKernel(EmbeddingShape shape, const int32_t* tokens,
                                    const T* output_gradient, Wide<T>* table_gradient) {
  __shared__ int same[kThreads];    // 1: that row of the present stretch has the token
  __shared__ int listed[kThreads];  // those rows, then -1
  __shared__ bool taken;            // by an earlier row's block
  __shared__ int found;             // where the latest stretch with such rows begins
  const int64_t first = blockIdx.x, width = shape.width;
  const int32_t token = tokens[first];
  if (threadIdx.x == 0) {
    taken = false;
    found = -1;
  }
  __syncthreads();
  for (int64_t row = threadIdx.x; row < first; row += kThreads) {
    if (tokens[row] == token) taken = true;  // by whichever thread: the value is the same
  }
  __syncthreads();
  if (taken) return;  // for the whole block
  for (int64_t begin = first; begin < shape.rows; begin += kThreads) {
    __syncthreads();
    const int64_t row = begin + threadIdx.x;
    const bool is_same = row < shape.rows && tokens[row] == token;
    same[threadIdx.x] = is_same ? 1 : 0;
    listed[threadIdx.x] = -1;
    if (is_same) found = static_cast<int>(begin);  // whichever thread's: the value is the same
    __syncthreads();
    if (found != static_cast<int>(begin)) continue;  // for the whole block, as mostly
    if (is_same) {
      int before = 0;
      for (int i = 0; i < static_cast<int>(threadIdx.x); ++i) before += same[i];
      listed[before] = static_cast<int>(row);
    }
    __syncthreads();
    AddRows(listed, output_gradient, width, table_gradient + token * width);
  }
}

template <typename T>
struct AddPositionGradient {
  EmbeddingShape shape;
  const T* output_gradient;
  Wide<T>* positions_gradient;
  __device__ void operator()(int64_t position, int pack) const {
    constexpr int kCount = cuda::kPack<T>;
    const int64_t at = int64_t{pack} * kCount, width = shape.width;
    Wide<T> sums[kCount];
    cuda::Load(positions_gradient + position * width, at, width, sums);
    for (int64_t row = position; row < shape.rows; row += shape.context) {
      Wide<T> gradient[kCount];
      cuda::Load(output_gradient + row * width, at, width, gradient);
      LONGHAUL_UNROLL
      for (int k = 0; k < kCount; ++k) sums[k] += gradient[k];
    }
    cuda::Store(sums, positions_gradient + position * width, at, width);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::EmbeddingForward(const EmbeddingShape& shape,
                                              absl::Span<const int32_t> tokens,
                                              absl::Span<const T> table,
                                              absl::Span<const T> positions,
                                              absl::Span<T> output) const {
  return cuda::ForEachOfRows(
      backend_, "embedding", shape.rows, cuda::PacksOf<T>(shape.width),
      EmbedAt<T>{shape, tokens.data(), table.data(), positions.empty() ? nullptr : positions.data(),
                 output.data()});
}

template <typename T>
absl::Status CudaKernels<T>::EmbeddingBackward(const EmbeddingShape& shape,
                                               absl::Span<const int32_t> tokens,
                                               absl::Span<const T> output_gradient,
                                               absl::Span<Wide<T>> table_gradient,
                                               absl::Span<Wide<T>> positions_gradient) const {
  constexpr const char* kOp = "embedding backward";
  LH_RETURN_IF_ERROR(cuda::Launch(backend_, kOp, {static_cast<unsigned>(shape.rows), kThreads},
                                  TableGradientKernel<T>, shape, tokens.data(),
                                  output_gradient.data(), table_gradient.data()));
  if (positions_gradient.empty()) return absl::OkStatus();
  return cuda::ForEachOfRows(
      backend_, kOp, shape.context, cuda::PacksOf<T>(shape.width),
      AddPositionGradient<T>{shape, output_gradient.data(), positions_gradient.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CudaKernels<T>::EmbeddingForward(                                         \
      const EmbeddingShape&, absl::Span<const int32_t>, absl::Span<const T>, absl::Span<const T>, \
      absl::Span<T>) const;                                                                       \
  template absl::Status CudaKernels<T>::EmbeddingBackward(                                        \
      const EmbeddingShape&, absl::Span<const int32_t>, absl::Span<const T>, absl::Span<Wide<T>>, \
      absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
