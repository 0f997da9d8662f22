// Softmax followed by cross-entropy, as a sum over tokens (never a mean, so that parts of a batch
// can be added).
#ifndef LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_H_
#define LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/ignored_target.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct SoftmaxCrossEntropyShape {
  int64_t rows = 0;
  int64_t vocab = 0;
  // Elements from one row of logits, and of their gradient, to the next, at least `vocab`; 0: as
  // many. What lies between rows is neither read nor written.
  int64_t row_pitch = 0;
  int64_t pitch() const { return row_pitch == 0 ? vocab : row_pitch; }
};

// logits [rows, vocab] in rows * pitch() elements; targets [rows], in [0, vocab) or kIgnoredTarget.
// *loss_sum gets the sum over rows in double, the CPU's in row order, once the backend is
// synchronised. OutOfRange on the CPU for another target; who copies targets to a device checks
// them.
template <typename T>
absl::Status SoftmaxCrossEntropyForward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                        absl::Span<const T> logits,
                                        absl::Span<const int32_t> targets, double* loss_sum);

// logits_gradient = softmax(logits) - one_hot(target), which lies as the logits do; may be the same
// memory as logits.
template <typename T>
absl::Status SoftmaxCrossEntropyBackward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                         absl::Span<const T> logits,
                                         absl::Span<const int32_t> targets,
                                         absl::Span<T> logits_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_SOFTMAX_CROSS_ENTROPY_H_
