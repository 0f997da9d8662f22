#include "compute/backend/cuda/launch.h"
#include "compute/ops/gelu.h"

namespace longhaul::compute {
namespace {

// gelu(x) = x sigmoid(2u), u = kSlope (x + kCubic x^3): the tanh form of gelu.h without a tanh.
constexpr double kSlope = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

template <typename T>
__device__ T SigmoidOfTwiceU(T x) {
  const T u = T(kSlope) * (x + T(kCubic) * x * x * x);
  return T(1) / (T(1) + exp(-2 * u));
}

template <typename T>
struct GeluAt {
  const T* input;
  T* output;
  __device__ void operator()(int64_t i) const { output[i] = input[i] * SigmoidOfTwiceU(input[i]); }
};

template <typename T>
struct GeluGradientAt {
  const T* input;
  const T* output_gradient;
  T* input_gradient;
  __device__ void operator()(int64_t i) const {
    const T x = input[i], sigmoid = SigmoidOfTwiceU(x);
    const T slope_of_2u = T(2 * kSlope) * (1 + T(3 * kCubic) * x * x);
    // (1 - sigmoid) first: x may be so large that its product with the slope is infinite.
    input_gradient[i] = output_gradient[i] * (sigmoid + sigmoid * (1 - sigmoid) * x * slope_of_2u);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::GeluForward(absl::Span<const T> input, absl::Span<T> output) const {
  return cuda::ForEach(backend_, "gelu", static_cast<int64_t>(output.size()),
                       GeluAt<T>{input.data(), output.data()});
}

template <typename T>
absl::Status CudaKernels<T>::GeluBackward(absl::Span<const T> input,
                                          absl::Span<const T> output_gradient,
                                          absl::Span<T> input_gradient) const {
  return cuda::ForEach(
      backend_, "gelu backward", static_cast<int64_t>(input_gradient.size()),
      GeluGradientAt<T>{input.data(), output_gradient.data(), input_gradient.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                                \
  template absl::Status CudaKernels<T>::GeluForward(absl::Span<const T>, absl::Span<T>) const; \
  template absl::Status CudaKernels<T>::GeluBackward(absl::Span<const T>, absl::Span<const T>, \
                                                     absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
