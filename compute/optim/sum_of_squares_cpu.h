// The CPU kernels of the sum of squares.
#ifndef LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_CPU_H_
#define LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_CPU_H_

#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute::cpu {

// As in sum_of_squares.h.
template <typename T>
double SumOfSquares(Backend& backend, absl::Span<const T> values);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPTIM_SUM_OF_SQUARES_CPU_H_
