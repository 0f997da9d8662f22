#include <algorithm>

#include "base/status_macros.h"
#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/embedding.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::EmbeddingForward(const EmbeddingShape& shape,
                                             absl::Span<const int32_t> tokens,
                                             absl::Span<const T> table,
                                             absl::Span<const T> positions,
                                             absl::Span<T> output) const {
  LH_RETURN_IF_ERROR(CheckIds("embedding", {"token", shape.vocab, 0}, tokens.data(), shape.rows));
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend_, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* token = table.data() + tokens[row] * width;
      T* result = output.data() + row * width;
      if (positions.empty()) {
        std::copy_n(token, width, result);
      } else {
        kernels.add(token, positions.data() + row % shape.context * width, result, width);
      }
    }
  });
  return absl::OkStatus();
}

// Cut by columns: rows with the same token add to the same place, and must do so in order.
template <typename T>
absl::Status CpuKernels<T>::EmbeddingBackward(const EmbeddingShape& shape,
                                              absl::Span<const int32_t> tokens,
                                              absl::Span<const T> output_gradient,
                                              absl::Span<Wide<T>> table_gradient,
                                              absl::Span<Wide<T>> positions_gradient) const {
  LH_RETURN_IF_ERROR(
      CheckIds("embedding backward", {"token", shape.vocab, 0}, tokens.data(), shape.rows));
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend_, width, kChunkColumns, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < shape.rows; ++row) {
      const T* from = output_gradient.data() + row * width + begin;
      T* token_sum = table_gradient.data() + tokens[row] * width + begin;
      kernels.add(token_sum, from, token_sum, end - begin);
      if (positions_gradient.empty()) continue;
      T* position_sum = positions_gradient.data() + row % shape.context * width + begin;
      kernels.add(position_sum, from, position_sum, end - begin);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CpuKernels<T>::EmbeddingForward(                                          \
      const EmbeddingShape&, absl::Span<const int32_t>, absl::Span<const T>, absl::Span<const T>, \
      absl::Span<T>) const;                                                                       \
  template absl::Status CpuKernels<T>::EmbeddingBackward(                                         \
      const EmbeddingShape&, absl::Span<const int32_t>, absl::Span<const T>, absl::Span<Wide<T>>, \
      absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
