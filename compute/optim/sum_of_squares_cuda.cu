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
absl::Status CudaKernels<T>::SumsOfSquares(absl::Span<const absl::Span<const T>> tensors,
                                           double* sums) const {
  LH_ASSIGN_OR_RETURN(double* const scratch,
                      backend_.template ScratchOf<double>(cuda::ScratchOfTotal()));
  for (const absl::Span<const T> values : tensors) {
    LH_RETURN_IF_ERROR(cuda::Total(backend_, "sum of squares", static_cast<int64_t>(values.size()),
                                   SquareAt<T>{values.data()}, scratch, sums++));
  }
  return absl::OkStatus();
}

template absl::Status CudaKernels<float>::SumsOfSquares(absl::Span<const absl::Span<const float>>,
                                                        double*) const;
template absl::Status CudaKernels<double>::SumsOfSquares(absl::Span<const absl::Span<const double>>,
                                                         double*) const;

}  // namespace longhaul::compute
