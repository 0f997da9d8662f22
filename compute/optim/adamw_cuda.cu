#include "base/status_macros.h"
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
absl::Status CudaKernels<T>::AdamW(const AdamWStep& step,
                                   absl::Span<const AdamWTensor<T>> tensors) const {
  AdamWStep undecayed = step;
  undecayed.weight_decay = 0;
  const AdamWFactors<T> decaying = FactorsOf<T>(step), constant = FactorsOf<T>(undecayed);
  for (const AdamWTensor<T>& tensor : tensors) {
    LH_RETURN_IF_ERROR(
        cuda::ForEach(backend_, "adamw", static_cast<int64_t>(tensor.weights.size()),
                      AdamWAt<T>{tensor.decays ? decaying : constant, tensor.gradient.data(),
                                 tensor.weights.data(), tensor.first_moment.data(),
                                 tensor.second_moment.data()}));
    if (!tensor.working.empty()) LH_RETURN_IF_ERROR(Round(tensor.weights, tensor.working));
  }
  return absl::OkStatus();
}

template absl::Status CudaKernels<float>::AdamW(const AdamWStep&,
                                                absl::Span<const AdamWTensor<float>>) const;
template absl::Status CudaKernels<double>::AdamW(const AdamWStep&,
                                                 absl::Span<const AdamWTensor<double>>) const;

}  // namespace longhaul::compute
