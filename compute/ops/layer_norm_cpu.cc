#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/layer_norm.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::LayerNormForward(const LayerNormShape& shape, absl::Span<const T> input,
                                             absl::Span<const T> weight, absl::Span<const T> bias,
                                             absl::Span<T> output,
                                             absl::Span<Wide<T>> statistics) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  const T epsilon = static_cast<T>(shape.epsilon);
  ForChunks(backend_, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const RowStatistics<T> row_statistics =
          kernels.layer_norm(input.data() + row * width, weight.data(), bias.data(), epsilon,
                             output.data() + row * width, width);
      statistics[row] = row_statistics.mean;
      statistics[shape.rows + row] = row_statistics.inverse_deviation;
    }
  });
  return absl::OkStatus();
}

// Chunks of rows for the input's gradient, then chunks of columns for the parameters': none depends
// on another, so all are tasks of one call.
template <typename T>
absl::Status CpuKernels<T>::LayerNormBackward(const LayerNormShape& shape,
                                              absl::Span<const T> input, absl::Span<const T> weight,
                                              absl::Span<const Wide<T>> statistics,
                                              absl::Span<const T> output_gradient,
                                              absl::Span<T> input_gradient,
                                              absl::Span<Wide<T>> weight_gradient,
                                              absl::Span<Wide<T>> bias_gradient) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width, rows = shape.rows;
  const T* means = statistics.data();
  const T* inverse_deviations = statistics.data() + rows;

  const auto input_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      kernels.layer_norm_backward(
          input.data() + row * width, weight.data(), {means[row], inverse_deviations[row]},
          output_gradient.data() + row * width, input_gradient.data() + row * width, width);
    }
  };
  const auto parameter_columns = [&](int64_t begin, int64_t end) {
    const MatrixView<T> gradient{output_gradient.data() + begin, width};
    kernels.add_column_sums(gradient, rows, end - begin, bias_gradient.data() + begin);
    kernels.add_normalized_column_sums(
        {gradient, {input.data() + begin, width}, means, inverse_deviations}, rows, end - begin,
        weight_gradient.data() + begin);
  };
  const int64_t row_chunks = ChunkCount(rows, ChunkRows(width));
  backend_.ParallelFor(row_chunks + ChunkCount(width, kChunkColumns), [&](int64_t index) {
    if (index < row_chunks) {
      RunChunk(index, rows, ChunkRows(width), input_rows);
    } else {
      RunChunk(index - row_chunks, width, kChunkColumns, parameter_columns);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CpuKernels<T>::LayerNormForward(                                          \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const T>,       \
      absl::Span<T>, absl::Span<Wide<T>>) const;                                                  \
  template absl::Status CpuKernels<T>::LayerNormBackward(                                         \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>, \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
