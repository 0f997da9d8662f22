// Element-wise sums: residual connections and gradient fan-in.
#ifndef LONGHAUL_COMPUTE_OPS_ADD_H_
#define LONGHAUL_COMPUTE_OPS_ADD_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// output = a + b, spans of equal length; output may be the same memory as a or b. T is float or
// double.
template <typename T>
absl::Status Add(Backend& backend, absl::Span<const T> a, absl::Span<const T> b,
                 absl::Span<T> output);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_ADD_H_
