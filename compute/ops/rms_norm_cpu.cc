#include "compute/ops/rms_norm_cpu.h"

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute::cpu {

template <typename T>
void RmsNormForward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                    absl::Span<const T> weight, absl::Span<T> output, absl::Span<T> statistics) {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  const T epsilon = static_cast<T>(shape.epsilon);
  ForChunks(backend, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      statistics[row] = kernels.rms_norm(input.data() + row * width, weight.data(), epsilon,
                                         output.data() + row * width, width);
    }
  });
}

// Chunks of rows for the input's gradient, then chunks of columns for the weight's: none depends on
// another, so all are tasks of one call.
template <typename T>
void RmsNormBackward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                     absl::Span<const T> weight, absl::Span<const T> statistics,
                     absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                     absl::Span<T> weight_gradient) {
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
  backend.ParallelFor(row_chunks + ChunkCount(width, kChunkColumns), [&](int64_t index) {
    if (index < row_chunks) {
      RunChunk(index, rows, ChunkRows(width), input_rows);
    } else {
      RunChunk(index - row_chunks, width, kChunkColumns, weight_columns);
    }
  });
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template void RmsNormForward<T>(Backend&, const RmsNormShape&, absl::Span<const T>,             \
                                  absl::Span<const T>, absl::Span<T>, absl::Span<T>);             \
  template void RmsNormBackward<T>(Backend&, const RmsNormShape&, absl::Span<const T>,            \
                                   absl::Span<const T>, absl::Span<const T>, absl::Span<const T>, \
                                   absl::Span<T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute::cpu
