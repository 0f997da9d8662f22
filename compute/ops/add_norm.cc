#include "compute/ops/add_norm.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status CheckShape(absl::string_view op, const NormShape& shape) {
  LH_RETURN_IF_ERROR(CheckEpsilon(op, shape.epsilon));
  return CheckExtents(op, {{"rows", shape.rows}, {"width", shape.width}});
}

int64_t StatisticsOfRow(const NormShape& shape) { return shape.centred ? 2 : 1; }
int64_t Biases(const NormShape& shape) { return shape.centred ? shape.width : 0; }

}  // namespace

template <typename T>
absl::Status AddNormForward(Backend& backend, const NormShape& shape,
                            const AddNormTensors<T>& tensors) {
  constexpr absl::string_view kOp = "add and norm";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "a", tensors.a.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "b", tensors.b.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "sum", tensors.sum.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", tensors.weight.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "bias", tensors.bias.size(), {Biases(shape)}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "output", tensors.output.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "statistics", tensors.statistics.size(),
                                   {StatisticsOfRow(shape), shape.rows}));
  return KernelsOf<T>(backend).AddNormForward(shape, tensors);
}

template <typename T>
absl::Status NormBackwardOnto(Backend& backend, const NormShape& shape,
                              const NormGradientTensors<T>& tensors) {
  constexpr absl::string_view kOp = "norm backward onto a gradient";
  LH_RETURN_IF_ERROR(CheckShape(kOp, shape));
  const auto check_matrix = [&](absl::string_view name, size_t elements) {
    return CheckElements(kOp, name, elements, {shape.rows, shape.width});
  };
  LH_RETURN_IF_ERROR(check_matrix("input", tensors.input.size()));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "weight", tensors.weight.size(), {shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "statistics", tensors.statistics.size(),
                                   {StatisticsOfRow(shape), shape.rows}));
  LH_RETURN_IF_ERROR(check_matrix("output_gradient", tensors.output_gradient.size()));
  LH_RETURN_IF_ERROR(check_matrix("so_far", tensors.so_far.size()));
  LH_RETURN_IF_ERROR(check_matrix("own", tensors.own.size()));
  LH_RETURN_IF_ERROR(check_matrix("input_gradient", tensors.input_gradient.size()));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "weight_gradient", tensors.weight_gradient.size(), {shape.width}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "bias_gradient", tensors.bias_gradient.size(), {Biases(shape)}));
  return KernelsOf<T>(backend).NormBackwardOnto(shape, tensors);
}

#define LONGHAUL_INSTANTIATE(T)                                                                  \
  template absl::Status AddNormForward<T>(Backend&, const NormShape&, const AddNormTensors<T>&); \
  template absl::Status NormBackwardOnto<T>(Backend&, const NormShape&,                          \
                                            const NormGradientTensors<T>&);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
