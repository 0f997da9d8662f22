// The CPU kernels of SwiGLU.
#ifndef LONGHAUL_COMPUTE_OPS_SWIGLU_CPU_H_
#define LONGHAUL_COMPUTE_OPS_SWIGLU_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/swiglu.h"

namespace longhaul::compute::cpu {

// As in swiglu.h; arguments have been checked.
template <typename T>
void SwiGluForward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                   absl::Span<T> output);
template <typename T>
void SwiGluBackward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                    absl::Span<const T> output_gradient, absl::Span<T> input_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_SWIGLU_CPU_H_
