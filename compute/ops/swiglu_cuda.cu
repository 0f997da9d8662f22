#include "compute/backend/cuda/launch.h"
#include "compute/ops/swiglu.h"

namespace longhaul::compute {
namespace {

// exp overflows to infinity and the sigmoid to 0.
template <typename T>
__device__ T Sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <typename T>
struct SwiGluAt {
  int64_t width;
  const T* input;
  T* output;
  __device__ void operator()(int64_t i) const {
    const T* gate = input + i / width * 2 * width + i % width;
    output[i] = *gate * Sigmoid(*gate) * gate[width];
  }
};

template <typename T>
struct SwiGluGradientAt {
  int64_t width;
  const T* input;
  const T* output_gradient;
  T* input_gradient;  // may be input: this element's own places are read before they are written
  __device__ void operator()(int64_t i) const {
    const int64_t at = i / width * 2 * width + i % width;
    const T gate = input[at], up = input[at + width], sigmoid = Sigmoid(gate);
    const T gradient = output_gradient[i];
    input_gradient[at] = gradient * up * (sigmoid * (gate * (1 - sigmoid) + 1));
    input_gradient[at + width] = gradient * (gate * sigmoid);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::SwiGluForward(const SwiGluShape& shape, absl::Span<const T> input,
                                           absl::Span<T> output) const {
  return cuda::ForEach(backend_, "swiglu", static_cast<int64_t>(output.size()),
                       SwiGluAt<T>{shape.width, input.data(), output.data()});
}

template <typename T>
absl::Status CudaKernels<T>::SwiGluBackward(const SwiGluShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> output_gradient,
                                            absl::Span<T> input_gradient) const {
  return cuda::ForEach(backend_, "swiglu backward", static_cast<int64_t>(output_gradient.size()),
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

}  // namespace longhaul::compute
