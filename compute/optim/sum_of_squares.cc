#include "compute/optim/sum_of_squares.h"

#include "compute/backend/operator_kernels.h"

namespace longhaul::compute {

template <typename T>
absl::Status SumOfSquares(Backend& backend, absl::Span<const T> values, double* sum) {
  return KernelsOf<T>(backend).SumOfSquares(values, sum);
}

template absl::Status SumOfSquares<float>(Backend&, absl::Span<const float>, double*);
template absl::Status SumOfSquares<double>(Backend&, absl::Span<const double>, double*);

}  // namespace longhaul::compute
