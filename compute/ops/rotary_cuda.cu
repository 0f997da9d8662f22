#include "compute/backend/cuda/launch.h"
#include "compute/ops/rotary.h"

namespace longhaul::compute {
namespace {

// A thread for each pair, and for each element that is only copied.
template <typename T>
struct RotateAt {
  RotaryShape shape;
  Wide<T> turn;
  const T* table;
  const T* input;
  T* output;  // may be input

  __device__ void operator()(int64_t i) const {
    const int64_t pairs = shape.head_width / 2, turned = shape.heads * pairs;
    const int64_t items = shape.row_width - turned;  // of a row
    const int64_t row = i / items, item = i % items;
    if (item >= turned) {
      const int64_t at = row * shape.row_width + item + turned;
      output[at] = input[at];
      return;
    }
    const int64_t pair = item % pairs;
    const int64_t x_at = row * shape.row_width + item / pairs * shape.head_width + pair;
    const T* angles = table + row % shape.context * shape.head_width + pair;
    const T cosine = angles[0], sine = angles[pairs] * turn;
    const T x = input[x_at], y = input[x_at + pairs];
    output[x_at] = x * cosine - y * sine;
    output[x_at + pairs] = y * cosine + x * sine;
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Rotary(const RotaryShape& shape, Wide<T> turn,
                                    absl::Span<const Wide<T>> table, absl::Span<const T> input,
                                    absl::Span<T> output) const {
  const int64_t items = shape.row_width - shape.heads * shape.head_width / 2;
  return cuda::ForEach(backend_, "rotary", shape.rows * items,
                       RotateAt<T>{shape, turn, table.data(), input.data(), output.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CudaKernels<T>::Rotary(                                                   \
      const RotaryShape&, Wide<T>, absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>) \
      const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
