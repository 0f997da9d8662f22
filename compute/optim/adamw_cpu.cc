#include <cmath>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/optim/adamw.h"

namespace longhaul::compute {
namespace {

// base^exponent by repeated squaring: the library's pow may differ from one machine to the next.
double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

template <typename T>
AdamWFactors<T> Factors(const AdamWStep& step) {
  return {.gradient_scale = static_cast<T>(step.gradient_scale),
          .decay = static_cast<T>(1 - step.learning_rate * step.weight_decay),
          .one_minus_beta1 = static_cast<T>(1 - step.beta1),
          .beta2 = static_cast<T>(step.beta2),
          .one_minus_beta2 = static_cast<T>(1 - step.beta2),
          .root_bias_correction2 = static_cast<T>(std::sqrt(1 - Power(step.beta2, step.step))),
          .epsilon = static_cast<T>(step.epsilon),
          .step_size = static_cast<T>(step.learning_rate / (1 - Power(step.beta1, step.step)))};
}

}  // namespace

template <typename T>
absl::Status CpuKernels<T>::AdamW(const AdamWStep& step, absl::Span<const T> gradient,
                                  absl::Span<T> weights, absl::Span<T> first_moment,
                                  absl::Span<T> second_moment) const {
  const AdamWFactors<T> factors = Factors<T>(step);
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend_, static_cast<int64_t>(weights.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.adamw(factors, gradient.data() + begin, weights.data() + begin,
                            first_moment.data() + begin, second_moment.data() + begin, end - begin);
            });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status CpuKernels<T>::AdamW(const AdamWStep&, absl::Span<const T>, absl::Span<T>, \
                                             absl::Span<T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
