// The CPU kernels of the embedding.
#ifndef LONGHAUL_COMPUTE_OPS_EMBEDDING_CPU_H_
#define LONGHAUL_COMPUTE_OPS_EMBEDDING_CPU_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/ops/embedding.h"

namespace longhaul::compute::cpu {

// As in embedding.h; sizes have been checked, tokens have not. Nothing is written on an error.
template <typename T>
absl::Status EmbeddingForward(Backend& backend, const EmbeddingShape& shape,
                              absl::Span<const int32_t> tokens, absl::Span<const T> table,
                              absl::Span<const T> positions, absl::Span<T> output);
template <typename T>
absl::Status EmbeddingBackward(Backend& backend, const EmbeddingShape& shape,
                               absl::Span<const int32_t> tokens,
                               absl::Span<const T> output_gradient, absl::Span<T> table_gradient,
                               absl::Span<T> positions_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_EMBEDDING_CPU_H_
