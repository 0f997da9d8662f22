#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/rms_norm.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::RmsNormForward(const RmsNormShape& shape, absl::Span<const T> input,
                                           absl::Span<const T> weight, absl::Span<T> output,
                                           absl::Span<Wide<T>> statistics) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  const T epsilon = static_cast<T>(shape.epsilon);
  ForChunks(backend_, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      statistics[row] = kernels.rms_norm(input.data() + row * width, weight.data(), epsilon,
                                         output.data() + row * width, width);
    }
  });
  return absl::OkStatus();
}

// Chunks of rows for the input's gradient, then chunks of columns for the weight's: none depends on
// another, so all are tasks of one call.
template <typename T>
absl::Status CpuKernels<T>::RmsNormBackward(const RmsNormShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> weight,
                                            absl::Span<const Wide<T>> statistics,
                                            absl::Span<const T> output_gradient,
                                            absl::Span<T> input_gradient,
                                            absl::Span<Wide<T>> weight_gradient) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width, rows = shape.rows;
  const auto input_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      kernels.rms_norm_backward(input.data() + row * width, weight.data(), statistics[row],
                                output_gradient.data() + row * width,
                                input_gradient.data() + row * width, width);
    }
  };
  const auto weight_columns = [&](int64_t begin, int64_t end) {
    kernels.add_normalized_column_sums({{output_gradient.data() + begin, width},
                                        {input.data() + begin, width},
                                        nullptr,
                                        statistics.data()},
                                       rows, end - begin, weight_gradient.data() + begin);
  };
  const int64_t row_chunks = ChunkCount(rows, ChunkRows(width));
  backend_.ParallelFor(row_chunks + ChunkCount(width, kChunkColumns), [&](int64_t index) {
    if (index < row_chunks) {
      RunChunk(index, rows, ChunkRows(width), input_rows);
    } else {
      RunChunk(index - row_chunks, width, kChunkColumns, weight_columns);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                 \
  template absl::Status CpuKernels<T>::RmsNormForward(const RmsNormShape&, absl::Span<const T>, \
                                                      absl::Span<const T>, absl::Span<T>,       \
                                                      absl::Span<Wide<T>>) const;               \
  template absl::Status CpuKernels<T>::RmsNormBackward(                                         \
      const RmsNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>, \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
