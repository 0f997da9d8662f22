#include "compute/backend/cuda/gelu_functions.cuh"
#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/gelu.h"

namespace longhaul::compute {

template <typename T>
absl::Status CudaKernels<T>::GeluForward(absl::Span<const T> input, absl::Span<T> output) const {
  return cuda::Map(backend_, "gelu", static_cast<int64_t>(output.size()), input.data(),
                   output.data(), cuda::Gelu<T>{});
}

template <typename T>
absl::Status CudaKernels<T>::GeluBackward(absl::Span<const T> input,
                                          absl::Span<const T> output_gradient,
                                          absl::Span<T> input_gradient) const {
  return cuda::Map2(backend_, "gelu backward", static_cast<int64_t>(input_gradient.size()),
                    input.data(), output_gradient.data(), input_gradient.data(),
                    cuda::GeluGradient<T>{});
}

#define LONGHAUL_INSTANTIATE(T)                                                                \
  template absl::Status CudaKernels<T>::GeluForward(absl::Span<const T>, absl::Span<T>) const; \
  template absl::Status CudaKernels<T>::GeluBackward(absl::Span<const T>, absl::Span<const T>, \
                                                     absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
