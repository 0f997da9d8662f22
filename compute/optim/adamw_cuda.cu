#include "compute/backend/cuda/launch.h"
#include "compute/optim/adamw.h"
#include "compute/optim/adamw_factors.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct AdamWAt {
  AdamWFactors<T> factors;
  const T* gradient;
  T* weights;
  T* first_moment;
  T* second_moment;

  __device__ void operator()(int64_t i) const {
    const AdamWFactors<T>& f = factors;
    const T g = gradient[i] * f.gradient_scale;
    const T first = first_moment[i] + f.one_minus_beta1 * (g - first_moment[i]);
    const T second = second_moment[i] * f.beta2 + f.one_minus_beta2 * g * g;
    first_moment[i] = first;
    second_moment[i] = second;
    weights[i] = weights[i] * f.decay -
                 f.step_size * (first / (sqrt(second) / f.root_bias_correction2 + f.epsilon));
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::AdamW(const AdamWStep& step, absl::Span<const T> gradient,
                                   absl::Span<T> weights, absl::Span<T> first_moment,
                                   absl::Span<T> second_moment) const {
  return cuda::ForEach(backend_, "adamw", static_cast<int64_t>(weights.size()),
                       AdamWAt<T>{FactorsOf<T>(step), gradient.data(), weights.data(),
                                  first_moment.data(), second_moment.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                      \
  template absl::Status CudaKernels<T>::AdamW(const AdamWStep&, absl::Span<const T>, \
                                              absl::Span<T>, absl::Span<T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
