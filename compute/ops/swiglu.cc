#include "compute/ops/swiglu.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status Check(absl::string_view op, const SwiGluShape& shape, size_t input, size_t output) {
  LH_RETURN_IF_ERROR(CheckExtents(op, {{"rows", shape.rows}, {"width", shape.width}}));
  LH_RETURN_IF_ERROR(CheckElements(op, "input", input, {shape.rows, 2, shape.width}));
  return CheckElements(op, "output", output, {shape.rows, shape.width});
}

}  // namespace

template <typename T>
absl::Status SwiGluForward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                           absl::Span<T> output) {
  constexpr absl::string_view kOp = "swiglu";
  LH_RETURN_IF_ERROR(Check(kOp, shape, input.size(), output.size()));
  return KernelsOf<T>(backend).SwiGluForward(shape, input, output);
}

template <typename T>
absl::Status SwiGluBackward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                            absl::Span<const T> output_gradient, absl::Span<T> input_gradient) {
  constexpr absl::string_view kOp = "swiglu backward";
  LH_RETURN_IF_ERROR(Check(kOp, shape, input.size(), output_gradient.size()));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "input_gradient", input_gradient.size(), {shape.rows, 2, shape.width}));
  return KernelsOf<T>(backend).SwiGluBackward(shape, input, output_gradient, input_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                              \
  template absl::Status SwiGluForward<T>(Backend&, const SwiGluShape&, absl::Span<const T>,  \
                                         absl::Span<T>);                                     \
  template absl::Status SwiGluBackward<T>(Backend&, const SwiGluShape&, absl::Span<const T>, \
                                          absl::Span<const T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
