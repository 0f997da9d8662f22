// The CPU kernels of softmax cross-entropy.
#ifndef LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_CPU_H_
#define LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_CPU_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/ops/softmax_cross_entropy.h"

namespace longhaul::compute::cpu {

// As in softmax_cross_entropy.h; sizes have been checked, targets have not. Nothing is written on
// an error.
template <typename T>
absl::Status SoftmaxCrossEntropyForward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                        absl::Span<const T> logits,
                                        absl::Span<const int32_t> targets, double* loss_sum);
template <typename T>
absl::Status SoftmaxCrossEntropyBackward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                         absl::Span<const T> logits,
                                         absl::Span<const int32_t> targets,
                                         absl::Span<T> logits_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_CPU_H_
