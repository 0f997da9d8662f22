// Root-mean-square normalisation over the last dimension (Zhang and Sennrich 2019, section 3).
#ifndef LONGHAUL_COMPUTE_OPS_RMS_NORM_H_
#define LONGHAUL_COMPUTE_OPS_RMS_NORM_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct RmsNormShape {
  int64_t rows = 0;
  int64_t width = 0;
  double epsilon = 1e-5;  // added to the mean square
};

// output = input / rms(input) * weight. input, output [rows, width]; weight [width]. statistics
// [rows]: 1/rms, kept for backward. T is float, double or BFloat16.
template <typename T>
absl::Status RmsNormForward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                            absl::Span<const T> weight, absl::Span<T> output,
                            absl::Span<Wide<T>> statistics);

// Writes input_gradient; adds to weight_gradient in row order.
template <typename T>
absl::Status RmsNormBackward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                             absl::Span<const T> weight, absl::Span<const Wide<T>> statistics,
                             absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                             absl::Span<Wide<T>> weight_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_RMS_NORM_H_
