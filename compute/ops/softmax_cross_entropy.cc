#include "compute/ops/softmax_cross_entropy.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status Check(absl::string_view op, const SoftmaxCrossEntropyShape& shape, size_t logits,
                   size_t targets) {
  LH_RETURN_IF_ERROR(
      CheckExtents(op, {{"rows", shape.rows}, {"vocab", shape.vocab}, {"pitch", shape.pitch()}}));
  LH_RETURN_IF_ERROR(CheckPitch(op, shape.vocab, shape.pitch()));
  LH_RETURN_IF_ERROR(CheckElements(op, "logits", logits, {shape.rows, shape.pitch()}));
  return CheckElements(op, "targets", targets, {shape.rows});
}

}  // namespace

template <typename T>
absl::Status SoftmaxCrossEntropyForward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                        absl::Span<const T> logits,
                                        absl::Span<const int32_t> targets, double* loss_sum) {
  constexpr absl::string_view kOp = "softmax cross-entropy";
  LH_RETURN_IF_ERROR(Check(kOp, shape, logits.size(), targets.size()));
  return KernelsOf<T>(backend).SoftmaxCrossEntropyForward(shape, logits, targets, loss_sum);
}

template <typename T>
absl::Status SoftmaxCrossEntropyBackward(Backend& backend, const SoftmaxCrossEntropyShape& shape,
                                         absl::Span<const T> logits,
                                         absl::Span<const int32_t> targets,
                                         absl::Span<T> logits_gradient) {
  constexpr absl::string_view kOp = "softmax cross-entropy backward";
  LH_RETURN_IF_ERROR(Check(kOp, shape, logits.size(), targets.size()));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "logits_gradient", logits_gradient.size(), {shape.rows, shape.pitch()}));
  return KernelsOf<T>(backend).SoftmaxCrossEntropyBackward(shape, logits, targets, logits_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status SoftmaxCrossEntropyForward<T>(Backend&, const SoftmaxCrossEntropyShape&,  \
                                                      absl::Span<const T>,                        \
                                                      absl::Span<const int32_t>, double*);        \
  template absl::Status SoftmaxCrossEntropyBackward<T>(Backend&, const SoftmaxCrossEntropyShape&, \
                                                       absl::Span<const T>,                       \
                                                       absl::Span<const int32_t>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
