// AdamW (Loshchilov and Hutter 2019, algorithm 2) in PyTorch's order of operations.
#ifndef LONGHAUL_COMPUTE_OPTIM_ADAMW_H_
#define LONGHAUL_COMPUTE_OPTIM_ADAMW_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct AdamWStep {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;    // 0 for tensors that do not decay
  double gradient_scale = 1;  // gradients are multiplied by this first: clip factor / tokens
  int64_t step = 1;           // 1-based, for the bias correction
};

// Spans of equal length; updates weights, first and second moments. T is float or double.
template <typename T>
absl::Status AdamW(Backend& backend, const AdamWStep& step, absl::Span<const T> gradient,
                   absl::Span<T> weights, absl::Span<T> first_moment, absl::Span<T> second_moment);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_ADAMW_H_
