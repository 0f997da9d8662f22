#include "compute/ops/add_norm.h"
#include "compute/ops/row_norm.cuh"

namespace longhaul::compute {

template <typename T>
absl::Status CudaKernels<T>::AddNormForward(const NormShape& shape,
                                            const AddNormTensors<T>& tensors) const {
  const int64_t inverses_at = shape.centred ? shape.rows : 0;
  const cuda::NormForward<T> norm{.rows = shape.rows,
                                  .width = shape.width,
                                  .epsilon = static_cast<Wide<T>>(shape.epsilon),
                                  .input = tensors.a.data(),
                                  .addend = tensors.b.data(),
                                  .sum = tensors.sum.data(),
                                  .weight = tensors.weight.data(),
                                  .bias = tensors.bias.data(),
                                  .output = tensors.output.data(),
                                  .means = tensors.statistics.data(),
                                  .inverses = tensors.statistics.data() + inverses_at};
  constexpr const char* kOp = "add and norm";
  if (shape.centred) return cuda::Normalise<true, T>(backend_, kOp, norm);
  return cuda::Normalise<false, T>(backend_, kOp, norm);
}

template <typename T>
absl::Status CudaKernels<T>::NormBackwardOnto(const NormShape& shape,
                                              const NormGradientTensors<T>& tensors) const {
  const int64_t inverses_at = shape.centred ? shape.rows : 0;
  const cuda::NormBackward<T> norm{.rows = shape.rows,
                                   .width = shape.width,
                                   .input = tensors.input.data(),
                                   .weight = tensors.weight.data(),
                                   .means = tensors.statistics.data(),
                                   .inverses = tensors.statistics.data() + inverses_at,
                                   .output_gradient = tensors.output_gradient.data(),
                                   .so_far = tensors.so_far.data(),
                                   .input_gradient = tensors.input_gradient.data()};
  constexpr const char* kOp = "norm backward onto a gradient";
  Wide<T>* const weight = tensors.weight_gradient.data();
  Wide<T>* const bias = tensors.bias_gradient.data();
  if (shape.centred) return cuda::NormaliseBackward<true, T>(backend_, kOp, norm, weight, bias);
  return cuda::NormaliseBackward<false, T>(backend_, kOp, norm, weight, nullptr);
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status CudaKernels<T>::AddNormForward(const NormShape&, const AddNormTensors<T>&) \
      const;                                                                                       \
  template absl::Status CudaKernels<T>::NormBackwardOnto(const NormShape&,                         \
                                                         const NormGradientTensors<T>&) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
