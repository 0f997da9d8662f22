// The kernels of CUDA devices: each operator's methods are beside the operator, in NAME_cuda.cu.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_KERNELS_H_

#include "compute/backend/operator_kernels.h"

namespace longhaul::compute {

class CudaBackend;

// Queues kernels on the stream of `backend`, which must outlive it.
template <typename T>
class CudaKernels final : public OperatorKernels<T> {
 public:
  explicit CudaKernels(CudaBackend& backend) : backend_(backend) {}

  absl::Status Add(absl::Span<const T> a, absl::Span<const T> b,
                   absl::Span<T> output) const override;
  absl::StatusOr<std::string> CausalAttentionKernel(
      const CausalAttentionShape& shape) const override;
  absl::Status CausalAttentionForward(const CausalAttentionShape& shape, absl::Span<const T> qkv,
                                      absl::Span<T> output, absl::Span<Wide<T>> lse,
                                      absl::Span<Wide<T>> workspace) const override;
  absl::Status CausalAttentionBackward(const CausalAttentionShape& shape, absl::Span<const T> qkv,
                                       absl::Span<const T> output, absl::Span<const Wide<T>> lse,
                                       absl::Span<const T> output_gradient,
                                       absl::Span<T> qkv_gradient,
                                       absl::Span<Wide<T>> workspace) const override;
  absl::Status Dropout(const DropoutShape& shape, const DropoutKey& key, absl::Span<const T> input,
                       absl::Span<T> output) const override;
  absl::Status EmbeddingForward(const EmbeddingShape& shape, absl::Span<const int32_t> tokens,
                                absl::Span<const T> table, absl::Span<const T> positions,
                                absl::Span<T> output) const override;
  absl::Status EmbeddingBackward(const EmbeddingShape& shape, absl::Span<const int32_t> tokens,
                                 absl::Span<const T> output_gradient,
                                 absl::Span<Wide<T>> table_gradient,
                                 absl::Span<Wide<T>> positions_gradient) const override;
  absl::Status GeluForward(absl::Span<const T> input, absl::Span<T> output) const override;
  absl::Status GeluBackward(absl::Span<const T> input, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient) const override;
  absl::Status LayerNormForward(const LayerNormShape& shape, absl::Span<const T> input,
                                absl::Span<const T> weight, absl::Span<const T> bias,
                                absl::Span<T> output,
                                absl::Span<Wide<T>> statistics) const override;
  absl::Status LayerNormBackward(const LayerNormShape& shape, absl::Span<const T> input,
                                 absl::Span<const T> weight, absl::Span<const Wide<T>> statistics,
                                 absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                                 absl::Span<Wide<T>> weight_gradient,
                                 absl::Span<Wide<T>> bias_gradient) const override;
  absl::Status LinearForward(const LinearShape& shape, absl::Span<const T> input,
                             absl::Span<const T> weight, absl::Span<const T> bias,
                             absl::Span<T> output) const override;
  absl::Status LinearBackward(const LinearShape& shape, absl::Span<const T> input,
                              absl::Span<const T> weight, absl::Span<const T> output_gradient,
                              absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
                              absl::Span<Wide<T>> bias_gradient) const override;
  absl::Status RmsNormForward(const RmsNormShape& shape, absl::Span<const T> input,
                              absl::Span<const T> weight, absl::Span<T> output,
                              absl::Span<Wide<T>> statistics) const override;
  absl::Status RmsNormBackward(const RmsNormShape& shape, absl::Span<const T> input,
                               absl::Span<const T> weight, absl::Span<const Wide<T>> statistics,
                               absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                               absl::Span<Wide<T>> weight_gradient) const override;
  absl::Status Rotary(const RotaryShape& shape, Wide<T> turn, absl::Span<const Wide<T>> table,
                      absl::Span<const T> input, absl::Span<T> output) const override;
  absl::Status SoftmaxCrossEntropyForward(const SoftmaxCrossEntropyShape& shape,
                                          absl::Span<const T> logits,
                                          absl::Span<const int32_t> targets,
                                          double* loss_sum) const override;
  absl::Status SoftmaxCrossEntropyBackward(const SoftmaxCrossEntropyShape& shape,
                                           absl::Span<const T> logits,
                                           absl::Span<const int32_t> targets,
                                           absl::Span<T> logits_gradient) const override;
  absl::Status SwiGluForward(const SwiGluShape& shape, absl::Span<const T> input,
                             absl::Span<T> output) const override;
  absl::Status SwiGluBackward(const SwiGluShape& shape, absl::Span<const T> input,
                              absl::Span<const T> output_gradient,
                              absl::Span<T> input_gradient) const override;
  absl::Status AdamW(const AdamWStep& step,
                     absl::Span<const AdamWTensor<T>> tensors) const override;
  absl::Status SumsOfSquares(absl::Span<const absl::Span<const T>> tensors,
                             double* sums) const override;
  absl::Status Round(absl::Span<const Wide<T>> from, absl::Span<T> to) const override;
  absl::Status AddNormForward(const NormShape& shape,
                              const AddNormTensors<T>& tensors) const override;
  absl::Status NormBackwardOnto(const NormShape& shape,
                                const NormGradientTensors<T>& tensors) const override;
  absl::Status LinearGeluForward(const LinearShape& shape,
                                 const LinearGeluTensors<T>& tensors) const override;
  absl::Status GeluLinearBackward(const LinearShape& shape,
                                  const GeluLinearGradientTensors<T>& tensors) const override;

 private:
  CudaBackend& backend_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_KERNELS_H_
