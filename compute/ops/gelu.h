// GELU in GPT-2's tanh approximation (Hendrycks and Gimpel 2016, section 2):
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
#ifndef LONGHAUL_COMPUTE_OPS_GELU_H_
#define LONGHAUL_COMPUTE_OPS_GELU_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// Spans of equal length. T is float, double or BFloat16.
template <typename T>
absl::Status GeluForward(Backend& backend, absl::Span<const T> input, absl::Span<T> output);

// Writes input_gradient; it may be the same memory as output_gradient.
template <typename T>
absl::Status GeluBackward(Backend& backend, absl::Span<const T> input,
                          absl::Span<const T> output_gradient, absl::Span<T> input_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_GELU_H_
