#include <type_traits>

#include "base/status_macros.h"
#include "compute/backend/cuda/column_sums.cuh"
#include "compute/backend/cuda/lt_product.h"
#include "compute/backend/cuda/matrix_product.h"
#include "compute/ops/linear_gelu.h"

namespace longhaul::compute {
namespace {

// False where the parts are to run one by one. cuBLASLt's GELU is for BFloat16 alone: its
// hyperbolic tangent need not be exact to a float.
template <typename T>
absl::StatusOr<bool> RunFused(CudaBackend& backend, const cuda::LtProduct<T>& product) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (backend.fuses_gelu()) return backend.Run(product);
  }
  return false;
}

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::LinearGeluForward(const LinearShape& shape,
                                               const LinearGeluTensors<T>& tensors) const {
  LH_ASSIGN_OR_RETURN(const bool done,
                      RunFused(backend_, cuda::LtProduct<T>{.rows = shape.rows,
                                                            .columns = shape.out,
                                                            .inner = shape.in,
                                                            .a = {tensors.input.data(), false},
                                                            .b = {tensors.weight.data(), true},
                                                            .c = tensors.output.data(),
                                                            .epilogue = cuda::Epilogue::kGeluOfBias,
                                                            .bias = tensors.bias.data(),
                                                            .extra = tensors.linear.data()}));
  if (done) return absl::OkStatus();
  return OperatorKernels<T>::LinearGeluForward(shape, tensors);
}

// The weight's gradient first: the input's may be written over the GELU's output.
template <typename T>
absl::Status CudaKernels<T>::GeluLinearBackward(const LinearShape& shape,
                                                const GeluLinearGradientTensors<T>& tensors) const {
  LH_RETURN_IF_ERROR(cuda::Multiply(
      backend_, cuda::Product<T, Wide<T>>{.rows = shape.out,
                                          .columns = shape.in,
                                          .inner = shape.rows,
                                          .a = {tensors.output_gradient.data(), true},
                                          .b = {tensors.gelu_output.data(), false},
                                          .c = tensors.weight_gradient.data(),
                                          .add = true}));
  if (!tensors.bias_gradient.empty()) {
    LH_RETURN_IF_ERROR(
        cuda::AddColumnSums<T>(backend_, "linear backward",
                               {shape.rows, shape.out, shape.out, tensors.output_gradient.data()},
                               tensors.bias_gradient.data()));
  }
  LH_ASSIGN_OR_RETURN(
      const bool done,
      RunFused(backend_, cuda::LtProduct<T>{.rows = shape.rows,
                                            .columns = shape.in,
                                            .inner = shape.out,
                                            .a = {tensors.output_gradient.data(), false},
                                            .b = {tensors.weight.data(), false},
                                            .c = tensors.input_gradient.data(),
                                            .epilogue = cuda::Epilogue::kGeluGradient,
                                            .extra = const_cast<T*>(tensors.gelu_input.data())}));
  if (done) return absl::OkStatus();
  LH_RETURN_IF_ERROR(
      cuda::Multiply(backend_, cuda::Product<T, T>{.rows = shape.rows,
                                                   .columns = shape.in,
                                                   .inner = shape.out,
                                                   .a = {tensors.output_gradient.data(), false},
                                                   .b = {tensors.weight.data(), false},
                                                   .c = tensors.own.data()}));
  return GeluBackward(tensors.gelu_input, tensors.own, tensors.input_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                               \
  template absl::Status CudaKernels<T>::LinearGeluForward(const LinearShape&,                 \
                                                          const LinearGeluTensors<T>&) const; \
  template absl::Status CudaKernels<T>::GeluLinearBackward(                                   \
      const LinearShape&, const GeluLinearGradientTensors<T>&) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
