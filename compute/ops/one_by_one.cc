// Neighbouring operators one after the other, for devices that have no kernel for both.
#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/add_norm.h"
#include "compute/ops/layer_norm.h"
#include "compute/ops/linear.h"
#include "compute/ops/linear_gelu.h"
#include "compute/ops/rms_norm.h"

namespace longhaul::compute {

template <typename T>
absl::Status OperatorKernels<T>::AddNormForward(const NormShape& shape,
                                                const AddNormTensors<T>& tensors) const {
  LH_RETURN_IF_ERROR(Add(tensors.a, tensors.b, tensors.sum));
  if (!shape.centred) {
    return RmsNormForward({shape.rows, shape.width, shape.epsilon}, tensors.sum, tensors.weight,
                          tensors.output, tensors.statistics);
  }
  return LayerNormForward({shape.rows, shape.width, shape.epsilon}, tensors.sum, tensors.weight,
                          tensors.bias, tensors.output, tensors.statistics);
}

template <typename T>
absl::Status OperatorKernels<T>::NormBackwardOnto(const NormShape& shape,
                                                  const NormGradientTensors<T>& tensors) const {
  if (shape.centred) {
    LH_RETURN_IF_ERROR(LayerNormBackward(
        {shape.rows, shape.width, shape.epsilon}, tensors.input, tensors.weight, tensors.statistics,
        tensors.output_gradient, tensors.own, tensors.weight_gradient, tensors.bias_gradient));
  } else {
    LH_RETURN_IF_ERROR(RmsNormBackward({shape.rows, shape.width, shape.epsilon}, tensors.input,
                                       tensors.weight, tensors.statistics, tensors.output_gradient,
                                       tensors.own, tensors.weight_gradient));
  }
  return Add(tensors.so_far, tensors.own, tensors.input_gradient);
}

template <typename T>
absl::Status OperatorKernels<T>::LinearGeluForward(const LinearShape& shape,
                                                   const LinearGeluTensors<T>& tensors) const {
  LH_RETURN_IF_ERROR(
      LinearForward(shape, tensors.input, tensors.weight, tensors.bias, tensors.linear));
  return GeluForward(tensors.linear, tensors.output);
}

template <typename T>
absl::Status OperatorKernels<T>::GeluLinearBackward(
    const LinearShape& shape, const GeluLinearGradientTensors<T>& tensors) const {
  LH_RETURN_IF_ERROR(LinearBackward(shape, tensors.gelu_output, tensors.weight,
                                    tensors.output_gradient, tensors.own, tensors.weight_gradient,
                                    tensors.bias_gradient));
  return GeluBackward(tensors.gelu_input, tensors.own, tensors.input_gradient);
}

template class OperatorKernels<float>;
template class OperatorKernels<double>;
template class OperatorKernels<BFloat16>;

}  // namespace longhaul::compute
