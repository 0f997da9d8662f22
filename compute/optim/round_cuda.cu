#include "compute/backend/cuda/pack.cuh"
#include "compute/optim/round.h"

namespace longhaul::compute {
namespace {

// What is stored is rounded.
struct Same {
  template <typename T>
  __device__ T operator()(T value) const {
    return value;
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Round(absl::Span<const Wide<T>> from, absl::Span<T> to) const {
  return cuda::Map(backend_, "round", static_cast<int64_t>(to.size()), from.data(), to.data(),
                   Same{});
}

template absl::Status CudaKernels<float>::Round(absl::Span<const float>, absl::Span<float>) const;
template absl::Status CudaKernels<double>::Round(absl::Span<const double>,
                                                 absl::Span<double>) const;
template absl::Status CudaKernels<BFloat16>::Round(absl::Span<const float>,
                                                   absl::Span<BFloat16>) const;

}  // namespace longhaul::compute
