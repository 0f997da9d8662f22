// A linear operator with bias and the GELU that reads it, and backward of a GELU and the linear
// operator that reads it, as one product each where the device has such; elsewhere one operator
// after the other, with the bits of those.
#ifndef LONGHAUL_COMPUTE_OPS_LINEAR_GELU_H_
#define LONGHAUL_COMPUTE_OPS_LINEAR_GELU_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "compute/ops/linear.h"

namespace longhaul::compute {

// `shape` has no pitch of its own in either: rows lie one after the other.
//
// linear = input W^T + bias, output = gelu(linear). None may overlap another. T is float, double or
// BFloat16; with BFloat16 a device may take the GELU of the sum before it is rounded.
template <typename T>
struct LinearGeluTensors {
  absl::Span<const T> input, weight, bias;
  absl::Span<T> linear, output;
};
template <typename T>
absl::Status LinearGeluForward(Backend& backend, const LinearShape& shape,
                               const LinearGeluTensors<T>& tensors);

// Of a GELU's output as the input of a linear operator of `shape`. Writes input_gradient, the
// gradient of the GELU's input, which may overlap `own` but nothing else; adds to weight_gradient
// and bias_gradient (empty without bias). `own` has room for the gradient in between and may get
// it.
template <typename T>
struct GeluLinearGradientTensors {
  absl::Span<const T> gelu_input, gelu_output, weight;
  absl::Span<const T> output_gradient;
  absl::Span<T> own, input_gradient;
  absl::Span<Wide<T>> weight_gradient, bias_gradient;
};
template <typename T>
absl::Status GeluLinearBackward(Backend& backend, const LinearShape& shape,
                                const GeluLinearGradientTensors<T>& tensors);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_LINEAR_GELU_H_
