#include "compute/ops/linear.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

absl::Status CheckShape(absl::string_view op, const LinearShape& shape) {
  LH_RETURN_IF_ERROR(CheckExtents(
      op, {{"rows", shape.rows}, {"in", shape.in}, {"out", shape.out}, {"pitch", shape.pitch()}}));
  return CheckPitch(op, shape.out, shape.pitch());
}

template <typename T>
absl::Status LinearForward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                           absl::Span<const T> weight, absl::Span<const T> bias,
                           absl::Span<T> output) {
  constexpr absl::string_view kOp = "linear";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.in}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", weight.size(), {shape.out, shape.in}));
  if (!bias.empty()) LH_RETURN_IF_ERROR(CheckElements(kOp, "bias", bias.size(), {shape.out}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output", output.size(), {shape.rows, shape.pitch()}));
  return KernelsOf<T>(backend).LinearForward(shape, input, weight, bias, output);
}

template <typename T>
absl::Status LinearBackward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                            absl::Span<const T> weight, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
                            absl::Span<Wide<T>> bias_gradient) {
  constexpr absl::string_view kOp = "linear backward";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.in}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", weight.size(), {shape.out, shape.in}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "output_gradient", output_gradient.size(), {shape.rows, shape.pitch()}));
  if (!input_gradient.empty()) {
    LH_RETURN_IF_ERROR(
        CheckElements(kOp, "input_gradient", input_gradient.size(), {shape.rows, shape.in}));
  }
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "weight_gradient", weight_gradient.size(), {shape.out, shape.in}));
  if (!bias_gradient.empty()) {
    LH_RETURN_IF_ERROR(CheckElements(kOp, "bias_gradient", bias_gradient.size(), {shape.out}));
  }
  return KernelsOf<T>(backend).LinearBackward(shape, input, weight, output_gradient, input_gradient,
                                              weight_gradient, bias_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status LinearForward<T>(Backend&, const LinearShape&, absl::Span<const T>,        \
                                         absl::Span<const T>, absl::Span<const T>, absl::Span<T>); \
  template absl::Status LinearBackward<T>(Backend&, const LinearShape&, absl::Span<const T>,       \
                                          absl::Span<const T>, absl::Span<const T>, absl::Span<T>, \
                                          absl::Span<Wide<T>>, absl::Span<Wide<T>>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
