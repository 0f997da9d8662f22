// The CPU kernels of causal attention.
#ifndef LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_CPU_H_
#define LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/causal_attention.h"

namespace longhaul::compute::cpu {

// As in causal_attention.h; arguments have been checked.
int64_t CausalAttentionWorkspace(const CausalAttentionShape& shape);
template <typename T>
void CausalAttentionForward(Backend& backend, const CausalAttentionShape& shape,
                            absl::Span<const T> qkv, absl::Span<T> output, absl::Span<T> lse,
                            absl::Span<T> workspace);
template <typename T>
void CausalAttentionBackward(Backend& backend, const CausalAttentionShape& shape,
                             absl::Span<const T> qkv, absl::Span<const T> output,
                             absl::Span<const T> lse, absl::Span<const T> output_gradient,
                             absl::Span<T> qkv_gradient, absl::Span<T> workspace);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_CAUSAL_ATTENTION_CPU_H_
