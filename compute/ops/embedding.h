// Token embedding, with learned positions or without.
#ifndef LONGHAUL_COMPUTE_OPS_EMBEDDING_H_
#define LONGHAUL_COMPUTE_OPS_EMBEDDING_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct EmbeddingShape {
  int64_t rows = 0;     // micro_batch * context
  int64_t context = 0;  // position of row r is r % context
  int64_t vocab = 0;
  int64_t width = 0;
};

// output[r] = table[tokens[r]] + positions[r % context]. table [vocab, width], positions
// [context, width] or empty (nothing is added), output [rows, width]. T is float, double or
// BFloat16. OutOfRange on the CPU for a token outside the vocabulary; who copies tokens to a device
// checks them.
template <typename T>
absl::Status EmbeddingForward(Backend& backend, const EmbeddingShape& shape,
                              absl::Span<const int32_t> tokens, absl::Span<const T> table,
                              absl::Span<const T> positions, absl::Span<T> output);

// Adds to table_gradient and positions_gradient (empty without positions), in row order.
template <typename T>
absl::Status EmbeddingBackward(Backend& backend, const EmbeddingShape& shape,
                               absl::Span<const int32_t> tokens,
                               absl::Span<const T> output_gradient,
                               absl::Span<Wide<T>> table_gradient,
                               absl::Span<Wide<T>> positions_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_EMBEDDING_H_
