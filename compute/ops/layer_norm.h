// Layer normalisation over the last dimension (Ba et al. 2016).
#ifndef LONGHAUL_COMPUTE_OPS_LAYER_NORM_H_
#define LONGHAUL_COMPUTE_OPS_LAYER_NORM_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct LayerNormShape {
  int64_t rows = 0;
  int64_t width = 0;
  double epsilon = 1e-5;  // added to the biased variance
};

// input, output [rows, width]; weight, bias [width]. statistics [2 * rows]: means, then
// 1/deviation, kept for backward. T is float, double or BFloat16.
template <typename T>
absl::Status LayerNormForward(Backend& backend, const LayerNormShape& shape,
                              absl::Span<const T> input, absl::Span<const T> weight,
                              absl::Span<const T> bias, absl::Span<T> output,
                              absl::Span<Wide<T>> statistics);

// Writes input_gradient; adds to weight_gradient and bias_gradient in row order.
template <typename T>
absl::Status LayerNormBackward(Backend& backend, const LayerNormShape& shape,
                               absl::Span<const T> input, absl::Span<const T> weight,
                               absl::Span<const Wide<T>> statistics,
                               absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                               absl::Span<Wide<T>> weight_gradient,
                               absl::Span<Wide<T>> bias_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_LAYER_NORM_H_
