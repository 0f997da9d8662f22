#include "compute/ops/causal_attention.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"
#include "model/attention_blocks.h"

namespace longhaul::compute {
namespace {

// What forward and backward have in common.
struct Elements {
  size_t qkv, output, lse, workspace;
};

absl::Status CheckShape(absl::string_view op, const CausalAttentionShape& shape) {
  LH_RETURN_IF_ERROR(CheckExtents(op, {{"batch", shape.batch},
                                       {"context", shape.context},
                                       {"heads", shape.heads},
                                       {"kv_heads", shape.kv_heads},
                                       {"width", shape.width}}));
  if (shape.width % shape.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, ": ", shape.heads, " heads do not divide the width ", shape.width));
  }
  if (shape.heads % shape.kv_heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": ", shape.kv_heads,
                                                 " heads of keys do not divide the ", shape.heads,
                                                 " heads of queries"));
}

absl::Status Check(absl::string_view op, const CausalAttentionShape& shape,
                   const Elements& elements) {
  LH_RETURN_IF_ERROR(CheckShape(op, shape));
  LH_RETURN_IF_ERROR(
      CheckElements(op, "qkv", elements.qkv, {shape.batch, shape.context, shape.qkv_width()}));
  LH_RETURN_IF_ERROR(
      CheckElements(op, "output", elements.output, {shape.batch, shape.context, shape.width}));
  LH_RETURN_IF_ERROR(
      CheckElements(op, "lse", elements.lse, {shape.batch, shape.heads, shape.context}));
  const int64_t workspace = CausalAttentionWorkspace(shape);
  if (elements.workspace < static_cast<size_t>(workspace)) {
    return absl::InvalidArgumentError(absl::StrCat(op, ": workspace has ", elements.workspace,
                                                   " elements and needs ", workspace));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t CausalAttentionWorkspace(const CausalAttentionShape& shape) {
  return model::AttentionRegions(shape.batch, shape.heads) *
         model::AttentionRegionElements(shape.context, shape.head_width());
}

template <typename T>
absl::StatusOr<std::string> CausalAttentionKernel(Backend& backend,
                                                  const CausalAttentionShape& shape) {
  LH_RETURN_IF_ERROR(CheckShape("causal attention", shape));
  return KernelsOf<T>(backend).CausalAttentionKernel(shape);
}

template <typename T>
absl::Status CausalAttentionForward(Backend& backend, const CausalAttentionShape& shape,
                                    absl::Span<const T> qkv, absl::Span<T> output,
                                    absl::Span<Wide<T>> lse, absl::Span<Wide<T>> workspace) {
  constexpr absl::string_view kOp = "causal attention";
  LH_RETURN_IF_ERROR(Check(kOp, shape, {qkv.size(), output.size(), lse.size(), workspace.size()}));
  return KernelsOf<T>(backend).CausalAttentionForward(shape, qkv, output, lse, workspace);
}

template <typename T>
absl::Status CausalAttentionBackward(Backend& backend, const CausalAttentionShape& shape,
                                     absl::Span<const T> qkv, absl::Span<const T> output,
                                     absl::Span<const Wide<T>> lse,
                                     absl::Span<const T> output_gradient,
                                     absl::Span<T> qkv_gradient, absl::Span<Wide<T>> workspace) {
  constexpr absl::string_view kOp = "causal attention backward";
  LH_RETURN_IF_ERROR(Check(kOp, shape, {qkv.size(), output.size(), lse.size(), workspace.size()}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output_gradient", output_gradient.size(),
                                   {static_cast<int64_t>(output.size())}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "qkv_gradient", qkv_gradient.size(), {static_cast<int64_t>(qkv.size())}));
  return KernelsOf<T>(backend).CausalAttentionBackward(shape, qkv, output, lse, output_gradient,
                                                       qkv_gradient, workspace);
}

#define LONGHAUL_INSTANTIATE(T)                                                               \
  template absl::StatusOr<std::string> CausalAttentionKernel<T>(Backend&,                     \
                                                                const CausalAttentionShape&); \
  template absl::Status CausalAttentionForward<T>(Backend&, const CausalAttentionShape&,      \
                                                  absl::Span<const T>, absl::Span<T>,         \
                                                  absl::Span<Wide<T>>, absl::Span<Wide<T>>);  \
  template absl::Status CausalAttentionBackward<T>(                                           \
      Backend&, const CausalAttentionShape&, absl::Span<const T>, absl::Span<const T>,        \
      absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
