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
  double weight_decay = 0;    // of the tensors that decay
  double gradient_scale = 1;  // gradients are multiplied by this first: clip factor / tokens
  int64_t step = 1;           // 1-based, for the bias correction
};

// One parameter; spans of equal length.
template <typename T>
struct AdamWTensor {
  absl::Span<const Wide<T>> gradient;
  absl::Span<Wide<T>> weights, first_moment, second_moment;
  absl::Span<T> working = {};  // gets the new weights, rounded; empty: there is no such copy
  bool decays = true;
};

// Updates weights, first and second moments of all tensors. T is float, double or BFloat16.
template <typename T>
absl::Status AdamW(Backend& backend, const AdamWStep& step,
                   absl::Span<const AdamWTensor<T>> tensors);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_ADAMW_H_
