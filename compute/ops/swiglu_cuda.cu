#include "compute/backend/cuda/fast_math.cuh"
#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/swiglu.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct SwiGluAt {
  static constexpr int kCount = cuda::kPack<T>;
  int64_t width;
  const T* input;
  T* output;
  __device__ void operator()(int64_t row, int pack) const {
    const int64_t at = int64_t{pack} * kCount;
    const T* const gates = input + row * 2 * width;
    Wide<T> gate[kCount], up[kCount];
    cuda::Load(gates, at, width, gate);
    cuda::Load(gates + width, at, width, up);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) gate[k] = gate[k] * cuda::Sigmoid<T>(gate[k]) * up[k];
    cuda::Store(gate, output + row * width, at, width);
  }
};

template <typename T>
struct SwiGluGradientAt {
  static constexpr int kCount = cuda::kPack<T>;
  int64_t width;
  const T* input;
  const T* output_gradient;
  T* input_gradient;  // may be input: this element's own places are read before they are written
  __device__ void operator()(int64_t row, int pack) const {
    const int64_t at = int64_t{pack} * kCount, gates = row * 2 * width;
    Wide<T> gate[kCount], up[kCount], gradient[kCount];
    cuda::Load(input + gates, at, width, gate);
    cuda::Load(input + gates + width, at, width, up);
    cuda::Load(output_gradient + row * width, at, width, gradient);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const Wide<T> sigmoid = cuda::Sigmoid<T>(gate[k]);
      const Wide<T> of_gate = gradient[k] * up[k] * (sigmoid * (gate[k] * (1 - sigmoid) + 1));
      up[k] = gradient[k] * (gate[k] * sigmoid);
      gate[k] = of_gate;
    }
    cuda::Store(gate, input_gradient + gates, at, width);
    cuda::Store(up, input_gradient + gates + width, at, width);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::SwiGluForward(const SwiGluShape& shape, absl::Span<const T> input,
                                           absl::Span<T> output) const {
  return cuda::ForEachOfRows(backend_, "swiglu", shape.rows, cuda::PacksOf<T>(shape.width),
                             SwiGluAt<T>{shape.width, input.data(), output.data()});
}

template <typename T>
absl::Status CudaKernels<T>::SwiGluBackward(const SwiGluShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> output_gradient,
                                            absl::Span<T> input_gradient) const {
  return cuda::ForEachOfRows(backend_, "swiglu backward", shape.rows, cuda::PacksOf<T>(shape.width),
                             SwiGluGradientAt<T>{shape.width, input.data(), output_gradient.data(),
                                                 input_gradient.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                                 \
  template absl::Status CudaKernels<T>::SwiGluForward(const SwiGluShape&, absl::Span<const T>,  \
                                                      absl::Span<T>) const;                     \
  template absl::Status CudaKernels<T>::SwiGluBackward(const SwiGluShape&, absl::Span<const T>, \
                                                       absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
