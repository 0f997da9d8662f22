#include "compute/ops/rms_norm.h"
#include "compute/ops/row_norm.cuh"

namespace longhaul::compute {

template <typename T>
absl::Status CudaKernels<T>::RmsNormForward(const RmsNormShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> weight, absl::Span<T> output,
                                            absl::Span<Wide<T>> statistics) const {
  return cuda::Normalise<false, T>(backend_, "rms norm",
                                   {.rows = shape.rows,
                                    .width = shape.width,
                                    .epsilon = static_cast<Wide<T>>(shape.epsilon),
                                    .input = input.data(),
                                    .weight = weight.data(),
                                    .output = output.data(),
                                    .inverses = statistics.data()});
}

template <typename T>
absl::Status CudaKernels<T>::RmsNormBackward(const RmsNormShape& shape, absl::Span<const T> input,
                                             absl::Span<const T> weight,
                                             absl::Span<const Wide<T>> statistics,
                                             absl::Span<const T> output_gradient,
                                             absl::Span<T> input_gradient,
                                             absl::Span<Wide<T>> weight_gradient) const {
  return cuda::NormaliseBackward<false, T>(backend_, "rms norm backward",
                                           {.rows = shape.rows,
                                            .width = shape.width,
                                            .input = input.data(),
                                            .weight = weight.data(),
                                            .inverses = statistics.data(),
                                            .output_gradient = output_gradient.data(),
                                            .input_gradient = input_gradient.data()},
                                           weight_gradient.data(), nullptr);
}

#define LONGHAUL_INSTANTIATE(T)                                                                  \
  template absl::Status CudaKernels<T>::RmsNormForward(const RmsNormShape&, absl::Span<const T>, \
                                                       absl::Span<const T>, absl::Span<T>,       \
                                                       absl::Span<Wide<T>>) const;               \
  template absl::Status CudaKernels<T>::RmsNormBackward(                                         \
      const RmsNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>,  \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
