#include <algorithm>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/rotary.h"

namespace longhaul::compute {
namespace {

template <typename T>
void RotateRow(const RotaryShape& shape, Wide<T> turn, const T* angles, const T* input, T* output) {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t pairs = shape.head_width / 2, rotated = shape.heads * shape.head_width;
  for (int64_t begin = 0; begin < rotated; begin += shape.head_width) {
    kernels.rotate(angles, angles + pairs, turn, input + begin, output + begin, pairs);
  }
  if (input != output) {
    std::copy(input + rotated, input + shape.row_width, output + rotated);
  }
}

}  // namespace

template <typename T>
absl::Status CpuKernels<T>::Rotary(const RotaryShape& shape, Wide<T> turn,
                                   absl::Span<const Wide<T>> table, absl::Span<const T> input,
                                   absl::Span<T> output) const {
  ForChunks(backend_, shape.rows, ChunkRows(shape.row_width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      RotateRow(shape, turn, table.data() + row % shape.context * shape.head_width,
                input.data() + row * shape.row_width, output.data() + row * shape.row_width);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CpuKernels<T>::Rotary(                                                    \
      const RotaryShape&, Wide<T>, absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>) \
      const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
