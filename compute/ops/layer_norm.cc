#include "compute/ops/layer_norm.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status CheckShape(absl::string_view op, const LayerNormShape& shape) {
  LH_RETURN_IF_ERROR(CheckEpsilon(op, shape.epsilon));
  return CheckExtents(op, {{"rows", shape.rows}, {"width", shape.width}});
}

}  // namespace

template <typename T>
absl::Status LayerNormForward(Backend& backend, const LayerNormShape& shape,
                              absl::Span<const T> input, absl::Span<const T> weight,
                              absl::Span<const T> bias, absl::Span<T> output,
                              absl::Span<Wide<T>> statistics) {
  constexpr absl::string_view kOp = "layer norm";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", weight.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "bias", bias.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output", output.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "statistics", statistics.size(), {2, shape.rows}));
  return KernelsOf<T>(backend).LayerNormForward(shape, input, weight, bias, output, statistics);
}

template <typename T>
absl::Status LayerNormBackward(Backend& backend, const LayerNormShape& shape,
                               absl::Span<const T> input, absl::Span<const T> weight,
                               absl::Span<const Wide<T>> statistics,
                               absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                               absl::Span<Wide<T>> weight_gradient,
                               absl::Span<Wide<T>> bias_gradient) {
  constexpr absl::string_view kOp = "layer norm backward";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", weight.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "statistics", statistics.size(), {2, shape.rows}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "output_gradient", output_gradient.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "input_gradient", input_gradient.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight_gradient", weight_gradient.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "bias_gradient", bias_gradient.size(), {shape.width}));
  return KernelsOf<T>(backend).LayerNormBackward(shape, input, weight, statistics, output_gradient,
                                                 input_gradient, weight_gradient, bias_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status LayerNormForward<T>(Backend&, const LayerNormShape&, absl::Span<const T>,  \
                                            absl::Span<const T>, absl::Span<const T>,              \
                                            absl::Span<T>, absl::Span<Wide<T>>);                   \
  template absl::Status LayerNormBackward<T>(Backend&, const LayerNormShape&, absl::Span<const T>, \
                                             absl::Span<const T>, absl::Span<const Wide<T>>,       \
                                             absl::Span<const T>, absl::Span<T>,                   \
                                             absl::Span<Wide<T>>, absl::Span<Wide<T>>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
