#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/rotary.h"

namespace longhaul::compute {
namespace {

// An item is a pack of one half of a head with its pairs in the other half, or a pack of what is
// only copied.
template <typename T>
struct RotateAt {
  static constexpr int kCount = cuda::kPack<T>;
  RotaryShape shape;
  Wide<T> turn;
  const Wide<T>* table;
  const T* input;
  T* output;  // may be input

  // Of a row.
  int64_t items() const {
    return shape.heads * cuda::PacksOf<T>(shape.head_width / 2) +
           cuda::PacksOf<T>(shape.row_width - shape.heads * shape.head_width);
  }

  __device__ void operator()(int64_t row, int item) const {
    const int pairs = static_cast<int>(shape.head_width / 2);
    const int packs_of_half = static_cast<int>(cuda::PacksOf<T>(pairs));
    const int head = item / packs_of_half;
    if (head >= shape.heads) {
      Copy(row, item - static_cast<int>(shape.heads) * packs_of_half);
      return;
    }
    const int64_t at = int64_t{item - head * packs_of_half} * kCount;
    const int64_t first = row * shape.row_width + head * shape.head_width;
    const Wide<T>* const angles = table + row % shape.context * shape.head_width;
    Wide<T> x[kCount], y[kCount], cosines[kCount], sines[kCount];
    cuda::Load(input + first, at, pairs, x);
    cuda::Load(input + first + pairs, at, pairs, y);
    cuda::Load(angles, at, pairs, cosines);
    cuda::Load(angles + pairs, at, pairs, sines);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const Wide<T> sine = sines[k] * turn, turned = x[k] * cosines[k] - y[k] * sine;
      y[k] = y[k] * cosines[k] + x[k] * sine;
      x[k] = turned;
    }
    cuda::Store(x, output + first, at, pairs);
    cuda::Store(y, output + first + pairs, at, pairs);
  }

 private:
  __device__ void Copy(int64_t row, int pack) const {
    if (input == output) return;
    const int64_t turned = shape.heads * shape.head_width, count = shape.row_width - turned;
    const int64_t first = row * shape.row_width + turned, at = int64_t{pack} * kCount;
    Wide<T> values[kCount];
    cuda::Load(input + first, at, count, values);
    cuda::Store(values, output + first, at, count);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Rotary(const RotaryShape& shape, Wide<T> turn,
                                    absl::Span<const Wide<T>> table, absl::Span<const T> input,
                                    absl::Span<T> output) const {
  const RotateAt<T> rotate{shape, turn, table.data(), input.data(), output.data()};
  return cuda::ForEachOfRows(backend_, "rotary", shape.rows, rotate.items(), rotate);
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CudaKernels<T>::Rotary(                                                   \
      const RotaryShape&, Wide<T>, absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>) \
      const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
