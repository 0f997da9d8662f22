#include "compute/backend/cuda/launch.h"
#include "compute/optim/round.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct RoundAt {
  const Wide<T>* from;
  T* to;
  __device__ void operator()(int64_t i) const { to[i] = static_cast<T>(from[i]); }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Round(absl::Span<const Wide<T>> from, absl::Span<T> to) const {
  return cuda::ForEach(backend_, "round", static_cast<int64_t>(to.size()),
                       RoundAt<T>{from.data(), to.data()});
}

template absl::Status CudaKernels<float>::Round(absl::Span<const float>, absl::Span<float>) const;
template absl::Status CudaKernels<double>::Round(absl::Span<const double>,
                                                 absl::Span<double>) const;

}  // namespace longhaul::compute
