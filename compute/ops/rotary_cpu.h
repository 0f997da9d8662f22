// The CPU kernels of rotary position embedding.
#ifndef LONGHAUL_COMPUTE_OPS_ROTARY_CPU_H_
#define LONGHAUL_COMPUTE_OPS_ROTARY_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/rotary.h"

namespace longhaul::compute::cpu {

// As in rotary.h; arguments have been checked.
// turn is 1, or -1 for the other direction.
template <typename T>
void Rotary(Backend& backend, const RotaryShape& shape, T turn, absl::Span<const T> table,
            absl::Span<const T> input, absl::Span<T> output);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_ROTARY_CPU_H_
