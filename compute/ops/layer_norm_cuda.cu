#include "compute/ops/layer_norm.h"
#include "compute/ops/row_norm.cuh"

namespace longhaul::compute {

template <typename T>
absl::Status CudaKernels<T>::LayerNormForward(const LayerNormShape& shape,
                                              absl::Span<const T> input, absl::Span<const T> weight,
                                              absl::Span<const T> bias, absl::Span<T> output,
                                              absl::Span<Wide<T>> statistics) const {
  return cuda::Normalise<true, T>(backend_, "layer norm",
                                  {.rows = shape.rows,
                                   .width = shape.width,
                                   .epsilon = static_cast<Wide<T>>(shape.epsilon),
                                   .input = input.data(),
                                   .weight = weight.data(),
                                   .bias = bias.data(),
                                   .output = output.data(),
                                   .means = statistics.data(),
                                   .inverses = statistics.data() + shape.rows});
}

template <typename T>
absl::Status CudaKernels<T>::LayerNormBackward(
    const LayerNormShape& shape, absl::Span<const T> input, absl::Span<const T> weight,
    absl::Span<const Wide<T>> statistics, absl::Span<const T> output_gradient,
    absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
    absl::Span<Wide<T>> bias_gradient) const {
  return cuda::NormaliseBackward<true, T>(backend_, "layer norm backward",
                                          {.rows = shape.rows,
                                           .width = shape.width,
                                           .input = input.data(),
                                           .weight = weight.data(),
                                           .means = statistics.data(),
                                           .inverses = statistics.data() + shape.rows,
                                           .output_gradient = output_gradient.data(),
                                           .input_gradient = input_gradient.data()},
                                          weight_gradient.data(), bias_gradient.data());
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CudaKernels<T>::LayerNormForward(                                         \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const T>,       \
      absl::Span<T>, absl::Span<Wide<T>>) const;                                                  \
  template absl::Status CudaKernels<T>::LayerNormBackward(                                        \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>, \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
