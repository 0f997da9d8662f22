// The CPU kernels of linear layers.
#ifndef LONGHAUL_COMPUTE_OPS_LINEAR_CPU_H_
#define LONGHAUL_COMPUTE_OPS_LINEAR_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/linear.h"

namespace longhaul::compute::cpu {

// As in linear.h; arguments have been checked.
template <typename T>
void LinearForward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                   absl::Span<const T> weight, absl::Span<const T> bias, absl::Span<T> output);
template <typename T>
void LinearBackward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                    absl::Span<const T> weight, absl::Span<const T> output_gradient,
                    absl::Span<T> input_gradient, absl::Span<T> weight_gradient,
                    absl::Span<T> bias_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_LINEAR_CPU_H_
