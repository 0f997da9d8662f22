#include "compute/optim/sum_of_squares.h"

#include "compute/backend/operator_kernels.h"

namespace longhaul::compute {

template <typename T>
absl::Status SumsOfSquares(Backend& backend, absl::Span<const absl::Span<const T>> tensors,
                           double* sums) {
  return KernelsOf<T>(backend).SumsOfSquares(tensors, sums);
}

#define LONGHAUL_INSTANTIATE(T) \
  template absl::Status SumsOfSquares<T>(Backend&, absl::Span<const absl::Span<const T>>, double*);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
