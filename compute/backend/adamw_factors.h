// What AdamW's kernels multiply with.
#ifndef LONGHAUL_COMPUTE_BACKEND_ADAMW_FACTORS_H_
#define LONGHAUL_COMPUTE_BACKEND_ADAMW_FACTORS_H_

namespace longhaul::compute {

// AdamW's per-step constants, rounded once from double.
template <typename T>
struct AdamWFactors {
  T gradient_scale;
  T decay;  // 1 - learning rate * weight decay
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T root_bias_correction2;  // sqrt(1 - beta2^step)
  T epsilon;
  T step_size;  // learning rate / (1 - beta1^step)
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_ADAMW_FACTORS_H_
