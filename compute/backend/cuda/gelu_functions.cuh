// GELU (Hendrycks and Gimpel 2016, section 2) in its tanh form, and its slope. For device code.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_GELU_FUNCTIONS_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_GELU_FUNCTIONS_CUH_

#include "compute/backend/cuda/fast_math.cuh"

namespace longhaul::compute::cuda {

// gelu(x) = x sigmoid(2u), u = kGeluSlope (x + kGeluCubic x^3): the tanh form without a tanh.
inline constexpr double kGeluSlope = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

// 2u.
template <typename W>
__device__ W GeluArgument(W x) {
  return W(2 * kGeluSlope) * (x + W(kGeluCubic) * x * x * x);
}

template <typename T>
struct Gelu {
  __device__ Wide<T> operator()(Wide<T> x) const { return x * Sigmoid<T>(GeluArgument(x)); }
};

template <typename T>
struct GeluGradient {
  __device__ Wide<T> operator()(Wide<T> x, Wide<T> output_gradient) const {
    using W = Wide<T>;
    const W sigmoid = Sigmoid<T>(GeluArgument(x));
    const W slope_of_2u = W(2 * kGeluSlope) * (1 + W(3 * kGeluCubic) * x * x);
    // (1 - sigmoid) first: x may be so large that its product with the slope is infinite.
    return output_gradient * (sigmoid + sigmoid * (1 - sigmoid) * x * slope_of_2u);
  }
};

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_GELU_FUNCTIONS_CUH_
