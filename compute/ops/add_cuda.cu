#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/add.h"

namespace longhaul::compute {
namespace {

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Add(absl::Span<const T> a, absl::Span<const T> b,
                                 absl::Span<T> output) const {
  return cuda::Map2(backend_, "add", static_cast<int64_t>(output.size()), a.data(), b.data(),
                    output.data(), Plus{});
}

#define LONGHAUL_INSTANTIATE(T)                                                       \
  template absl::Status CudaKernels<T>::Add(absl::Span<const T>, absl::Span<const T>, \
                                            absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
