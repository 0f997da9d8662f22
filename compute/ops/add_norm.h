// A residual's sum and the norm that reads it, in one pass over memory where the device has a
// kernel for it; elsewhere one operator after the other, with the bits of those.
#ifndef LONGHAUL_COMPUTE_OPS_ADD_NORM_H_
#define LONGHAUL_COMPUTE_OPS_ADD_NORM_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct NormShape {
  int64_t rows = 0;
  int64_t width = 0;
  double epsilon = 1e-5;
  bool centred = true;  // layer norm (ops/layer_norm.h); else RMS norm (ops/rms_norm.h), no bias
};

// sum = a + b, as Add; output and statistics of its norm. T is float, double or BFloat16.
template <typename T>
struct AddNormTensors {
  absl::Span<const T> a, b;
  absl::Span<T> sum;  // may be a or b; output may be a or b too, but not sum
  absl::Span<const T> weight, bias;
  absl::Span<T> output;
  absl::Span<Wide<T>> statistics;
};
template <typename T>
absl::Status AddNormForward(Backend& backend, const NormShape& shape,
                            const AddNormTensors<T>& tensors);

// Writes input_gradient = so_far + the gradient that comes through the norm, which `own` has room
// for and may get; adds to weight_gradient and bias_gradient. A device may round the sum once where
// two operators round twice.
template <typename T>
struct NormGradientTensors {
  absl::Span<const T> input, weight;
  absl::Span<const Wide<T>> statistics;
  absl::Span<const T> output_gradient, so_far;
  absl::Span<T> own;             // may be output_gradient
  absl::Span<T> input_gradient;  // may be output_gradient, so_far or own
  absl::Span<Wide<T>> weight_gradient, bias_gradient;
};
template <typename T>
absl::Status NormBackwardOnto(Backend& backend, const NormShape& shape,
                              const NormGradientTensors<T>& tensors);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_ADD_NORM_H_
