#include "compute/optim/adamw_factors.h"

#include <cmath>

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

}  // namespace

template <typename T>
AdamWFactors<T> FactorsOf(const AdamWStep& step) {
  return {.gradient_scale = static_cast<T>(step.gradient_scale),
          .decay = static_cast<T>(1 - step.learning_rate * step.weight_decay),
          .one_minus_beta1 = static_cast<T>(1 - step.beta1),
          .beta2 = static_cast<T>(step.beta2),
          .one_minus_beta2 = static_cast<T>(1 - step.beta2),
          .root_bias_correction2 = static_cast<T>(std::sqrt(1 - Power(step.beta2, step.step))),
          .epsilon = static_cast<T>(step.epsilon),
          .step_size = static_cast<T>(step.learning_rate / (1 - Power(step.beta1, step.step)))};
}

template AdamWFactors<float> FactorsOf<float>(const AdamWStep&);
template AdamWFactors<double> FactorsOf<double>(const AdamWStep&);

}  // namespace longhaul::compute
