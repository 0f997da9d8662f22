#include "compute/ops/embedding.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

// What forward and backward have in common: the elements of the three matrices.
struct Elements {
  size_t table, positions, rows;
};

absl::Status Check(absl::string_view op, const EmbeddingShape& shape, size_t tokens,
                   const Elements& elements) {
  LH_RETURN_IF_ERROR(CheckExtents(op, {{"rows", shape.rows},
                                       {"context", shape.context},
                                       {"vocab", shape.vocab},
                                       {"width", shape.width}}));
  LH_RETURN_IF_ERROR(CheckElements(op, "tokens", tokens, {shape.rows}));
  LH_RETURN_IF_ERROR(CheckElements(op, "table", elements.table, {shape.vocab, shape.width}));
  if (elements.positions > 0) {
    LH_RETURN_IF_ERROR(
        CheckElements(op, "positions", elements.positions, {shape.context, shape.width}));
  }
  return CheckElements(op, "output", elements.rows, {shape.rows, shape.width});
}

}  // namespace

template <typename T>
absl::Status EmbeddingForward(Backend& backend, const EmbeddingShape& shape,
                              absl::Span<const int32_t> tokens, absl::Span<const T> table,
                              absl::Span<const T> positions, absl::Span<T> output) {
  constexpr absl::string_view kOp = "embedding";
  LH_RETURN_IF_ERROR(
      Check(kOp, shape, tokens.size(), {table.size(), positions.size(), output.size()}));
  return KernelsOf<T>(backend).EmbeddingForward(shape, tokens, table, positions, output);
}

template <typename T>
absl::Status EmbeddingBackward(Backend& backend, const EmbeddingShape& shape,
                               absl::Span<const int32_t> tokens,
                               absl::Span<const T> output_gradient,
                               absl::Span<Wide<T>> table_gradient,
                               absl::Span<Wide<T>> positions_gradient) {
  constexpr absl::string_view kOp = "embedding backward";
  LH_RETURN_IF_ERROR(
      Check(kOp, shape, tokens.size(),
            {table_gradient.size(), positions_gradient.size(), output_gradient.size()}));
  return KernelsOf<T>(backend).EmbeddingBackward(shape, tokens, output_gradient, table_gradient,
                                                 positions_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                              \
  template absl::Status EmbeddingForward<T>(Backend&, const EmbeddingShape&,                 \
                                            absl::Span<const int32_t>, absl::Span<const T>,  \
                                            absl::Span<const T>, absl::Span<T>);             \
  template absl::Status EmbeddingBackward<T>(Backend&, const EmbeddingShape&,                \
                                             absl::Span<const int32_t>, absl::Span<const T>, \
                                             absl::Span<Wide<T>>, absl::Span<Wide<T>>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
