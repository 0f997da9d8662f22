// Sum of squares of a tensor in double, in an order that depends on its length only.
#ifndef LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_
#define LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// *sum gets it once the backend is synchronised. T is float or double.
template <typename T>
absl::Status SumOfSquares(Backend& backend, absl::Span<const T> values, double* sum);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_
