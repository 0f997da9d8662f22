// Multi-head causal self-attention (Vaswani et al. 2017, section 3.2) with scale
// 1/sqrt(width/heads), whose query heads may share keys and values in groups (Ainslie et al. 2023,
// section 2.2). Backward recomputes the probabilities from the kept log-sum-exp (Dao et al. 2022,
// section 3.1), so that no context x context matrix is kept.
#ifndef LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_H_
#define LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct CausalAttentionShape {
  int64_t batch = 0;
  int64_t context = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h uses key and value head h / (heads/kv_heads)
  int64_t width = 0;     // of all query heads; heads divides it

  constexpr int64_t head_width() const { return width / heads; }
  constexpr int64_t qkv_width() const { return width + 2 * kv_heads * head_width(); }
};

// Elements of `workspace` that forward and backward need; contents do not survive a call.
int64_t CausalAttentionWorkspace(const CausalAttentionShape& shape);

// Which of the backend's kernels computes it, as a person reads it: "own", or a library's name.
// What that kernel needs beside device memory is made now rather than at the first call.
template <typename T>
absl::StatusOr<std::string> CausalAttentionKernel(Backend& backend,
                                                  const CausalAttentionShape& shape);

// qkv [batch*context, qkv_width]: q | k | v in each row, each its heads side by side. output
// [batch*context, width]. lse [batch*heads*context]: log-sum-exp of each row of scores, kept for
// backward. T is float, double or BFloat16.
template <typename T>
absl::Status CausalAttentionForward(Backend& backend, const CausalAttentionShape& shape,
                                    absl::Span<const T> qkv, absl::Span<T> output,
                                    absl::Span<Wide<T>> lse, absl::Span<Wide<T>> workspace);

// Writes qkv_gradient [batch*context, qkv_width]; a group's gradients are added in head order.
template <typename T>
absl::Status CausalAttentionBackward(Backend& backend, const CausalAttentionShape& shape,
                                     absl::Span<const T> qkv, absl::Span<const T> output,
                                     absl::Span<const Wide<T>> lse,
                                     absl::Span<const T> output_gradient,
                                     absl::Span<T> qkv_gradient, absl::Span<Wide<T>> workspace);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_H_
