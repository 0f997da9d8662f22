// Functions as exact as what they are for: results that are rounded to BFloat16 come from the
// card's approximations, whose errors are a hundredth of that rounding. For device code.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_FAST_MATH_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_FAST_MATH_CUH_

#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "compute/backend/element.h"

namespace longhaul::compute::cuda {

// For results in T.
template <typename T>
__device__ Wide<T> Exp(Wide<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, BFloat16>) return __expf(x);
#endif
  return exp(x);
}

// 1 / x; 0 for infinities.
template <typename T>
__device__ Wide<T> Inverse(Wide<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, BFloat16>) return __fdividef(1.0f, x);
#endif
  return Wide<T>(1) / x;
}

// Overflow of the exponential gives 0.
template <typename T>
__device__ Wide<T> Sigmoid(Wide<T> x) {
  return Inverse<T>(Wide<T>(1) + Exp<T>(-x));
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_FAST_MATH_CUH_
