// The CPU kernels of GELU.
#ifndef LONGHAUL_COMPUTE_OPS_GELU_CPU_H_
#define LONGHAUL_COMPUTE_OPS_GELU_CPU_H_

#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute::cpu {

// As in gelu.h; arguments have been checked.
template <typename T>
void GeluForward(Backend& backend, absl::Span<const T> input, absl::Span<T> output);
template <typename T>
void GeluBackward(Backend& backend, absl::Span<const T> input, absl::Span<const T> output_gradient,
                  absl::Span<T> input_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_GELU_CPU_H_
