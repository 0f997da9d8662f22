#include "base/status_macros.h"
#include "compute/backend/cuda/total.cuh"
#include "compute/optim/sum_of_squares.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct SquareAt {
  const T* values;
  __device__ double operator()(int64_t i) const {
    return static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::SumOfSquares(absl::Span<const T> values, double* sum) const {
  LH_ASSIGN_OR_RETURN(double* const scratch,
                      backend_.template ScratchOf<double>(cuda::ScratchOfTotal()));
  return cuda::Total(backend_, "sum of squares", static_cast<int64_t>(values.size()),
                     SquareAt<T>{values.data()}, scratch, sum);
}

template absl::Status CudaKernels<float>::SumOfSquares(absl::Span<const float>, double*) const;
template absl::Status CudaKernels<double>::SumOfSquares(absl::Span<const double>, double*) const;

}  // namespace longhaul::compute
