#include "compute/backend/cuda/launch.h"
#include "compute/ops/add.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct AddAt {
  const T* a;
  const T* b;
  T* output;
  __device__ void operator()(int64_t i) const { output[i] = a[i] + b[i]; }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Add(absl::Span<const T> a, absl::Span<const T> b,
                                 absl::Span<T> output) const {
  return cuda::ForEach(backend_, "add", static_cast<int64_t>(output.size()),
                       AddAt<T>{a.data(), b.data(), output.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                       \
  template absl::Status CudaKernels<T>::Add(absl::Span<const T>, absl::Span<const T>, \
                                            absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
