// Sums of squares of tensors in double, in an order that depends on their lengths only.
#ifndef LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_
#define LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// sums[i] gets that of tensors[i] once the backend is synchronised. T is float, double or BFloat16.
template <typename T>
absl::Status SumsOfSquares(Backend& backend, absl::Span<const absl::Span<const T>> tensors,
                           double* sums);

// Of one tensor.
template <typename T>
absl::Status SumOfSquares(Backend& backend, absl::Span<const T> values, double* sum) {
  return SumsOfSquares<T>(backend, absl::MakeConstSpan(&values, 1), sum);
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_H_
