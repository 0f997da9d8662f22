// The CPU kernels of element-wise sums.
#ifndef LONGHAUL_COMPUTE_OPS_ADD_CPU_H_
#define LONGHAUL_COMPUTE_OPS_ADD_CPU_H_

#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute::cpu {

// As compute::Add; arguments have been checked.
template <typename T>
void Add(Backend& backend, absl::Span<const T> a, absl::Span<const T> b, absl::Span<T> output);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_ADD_CPU_H_
