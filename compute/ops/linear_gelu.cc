#include "compute/ops/linear_gelu.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status CheckDense(absl::string_view op, const LinearShape& shape) {
  LH_RETURN_IF_ERROR(CheckShape(op, shape));
  if (shape.pitch() == shape.out) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": rows of ", shape.out, " elements begin ", shape.pitch(), " apart"));
}

}  // namespace

template <typename T>
absl::Status LinearGeluForward(Backend& backend, const LinearShape& shape,
                               const LinearGeluTensors<T>& tensors) {
  constexpr absl::string_view kOp = "linear and gelu";
  LH_RETURN_IF_ERROR(CheckDense(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", tensors.input.size(), {shape.rows, shape.in}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", tensors.weight.size(), {shape.out, shape.in}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "bias", tensors.bias.size(), {shape.out}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "linear", tensors.linear.size(), {shape.rows, shape.out}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output", tensors.output.size(), {shape.rows, shape.out}));
  return KernelsOf<T>(backend).LinearGeluForward(shape, tensors);
}

template <typename T>
absl::Status GeluLinearBackward(Backend& backend, const LinearShape& shape,
                                const GeluLinearGradientTensors<T>& tensors) {
  constexpr absl::string_view kOp = "gelu and linear backward";
  LH_RETURN_IF_ERROR(CheckDense(kOp, shape));
  const auto check_input = [&](absl::string_view name, size_t elements) {
    return CheckElements(kOp, name, elements, {shape.rows, shape.in});
  };
  LH_RETURN_IF_ERROR(check_input("gelu_input", tensors.gelu_input.size()));
  LH_RETURN_IF_ERROR(check_input("gelu_output", tensors.gelu_output.size()));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", tensors.weight.size(), {shape.out, shape.in}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output_gradient", tensors.output_gradient.size(),
                                   {shape.rows, shape.out}));
  LH_RETURN_IF_ERROR(check_input("own", tensors.own.size()));
  LH_RETURN_IF_ERROR(check_input("input_gradient", tensors.input_gradient.size()));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "weight_gradient", tensors.weight_gradient.size(), {shape.out, shape.in}));
  if (!tensors.bias_gradient.empty()) {
    LH_RETURN_IF_ERROR(
        CheckElements(kOp, "bias_gradient", tensors.bias_gradient.size(), {shape.out}));
  }
  return KernelsOf<T>(backend).GeluLinearBackward(shape, tensors);
}

#define LONGHAUL_INSTANTIATE(T)                                             \
  template absl::Status LinearGeluForward<T>(Backend&, const LinearShape&,  \
                                             const LinearGeluTensors<T>&);  \
  template absl::Status GeluLinearBackward<T>(Backend&, const LinearShape&, \
                                              const GeluLinearGradientTensors<T>&);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
