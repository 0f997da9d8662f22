// Values in the type that a stage computes in.
#ifndef LONGHAUL_COMPUTE_OPTIM_ROUND_H_
#define LONGHAUL_COMPUTE_OPTIM_ROUND_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// to = from, each rounded to the nearest, ties to even. Spans of equal length. T is float, double
// or BFloat16.
template <typename T>
absl::Status Round(Backend& backend, absl::Span<const Wide<T>> from, absl::Span<T> to);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_ROUND_H_
