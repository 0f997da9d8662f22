// The kernels of every operator on one kind of device.
#ifndef LONGHAUL_COMPUTE_BACKEND_OPERATOR_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_OPERATOR_KERNELS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "compute/backend/element.h"

namespace longhaul::compute {

// Of the operators' own headers.
template <typename T>
struct AdamWTensor;
template <typename T>
struct AddNormTensors;
template <typename T>
struct GeluLinearGradientTensors;
template <typename T>
struct LinearGeluTensors;
template <typename T>
struct NormGradientTensors;
struct AdamWStep;
struct CausalAttentionShape;
struct DropoutKey;
struct DropoutShape;
struct EmbeddingShape;
struct LayerNormShape;
struct LinearShape;
struct NormShape;
struct RmsNormShape;
struct RotaryShape;
struct SoftmaxCrossEntropyShape;
struct SwiGluShape;

// What the operators' functions call once they have checked their arguments; each method does what
// the function of its name promises. Spans are device memory. Belongs to a backend and runs on it.
template <typename T>
class OperatorKernels {
 public:
  virtual ~OperatorKernels() = default;

  virtual absl::Status Add(absl::Span<const T> a, absl::Span<const T> b,
                           absl::Span<T> output) const = 0;

  // Which kernel attention of this shape takes, as a person reads it. What it needs is made now.
  virtual absl::StatusOr<std::string> CausalAttentionKernel(const CausalAttentionShape&) const {
    return "own";
  }
  virtual absl::Status CausalAttentionForward(const CausalAttentionShape& shape,
                                              absl::Span<const T> qkv, absl::Span<T> output,
                                              absl::Span<Wide<T>> lse,
                                              absl::Span<Wide<T>> workspace) const = 0;
  virtual absl::Status CausalAttentionBackward(const CausalAttentionShape& shape,
                                               absl::Span<const T> qkv, absl::Span<const T> output,
                                               absl::Span<const Wide<T>> lse,
                                               absl::Span<const T> output_gradient,
                                               absl::Span<T> qkv_gradient,
                                               absl::Span<Wide<T>> workspace) const = 0;

  virtual absl::Status Dropout(const DropoutShape& shape, const DropoutKey& key,
                               absl::Span<const T> input, absl::Span<T> output) const = 0;

  virtual absl::Status EmbeddingForward(const EmbeddingShape& shape,
                                        absl::Span<const int32_t> tokens, absl::Span<const T> table,
                                        absl::Span<const T> positions,
                                        absl::Span<T> output) const = 0;
  virtual absl::Status EmbeddingBackward(const EmbeddingShape& shape,
                                         absl::Span<const int32_t> tokens,
                                         absl::Span<const T> output_gradient,
                                         absl::Span<Wide<T>> table_gradient,
                                         absl::Span<Wide<T>> positions_gradient) const = 0;

  virtual absl::Status GeluForward(absl::Span<const T> input, absl::Span<T> output) const = 0;
  virtual absl::Status GeluBackward(absl::Span<const T> input, absl::Span<const T> output_gradient,
                                    absl::Span<T> input_gradient) const = 0;

  virtual absl::Status LayerNormForward(const LayerNormShape& shape, absl::Span<const T> input,
                                        absl::Span<const T> weight, absl::Span<const T> bias,
                                        absl::Span<T> output,
                                        absl::Span<Wide<T>> statistics) const = 0;
  virtual absl::Status LayerNormBackward(const LayerNormShape& shape, absl::Span<const T> input,
                                         absl::Span<const T> weight,
                                         absl::Span<const Wide<T>> statistics,
                                         absl::Span<const T> output_gradient,
                                         absl::Span<T> input_gradient,
                                         absl::Span<Wide<T>> weight_gradient,
                                         absl::Span<Wide<T>> bias_gradient) const = 0;

  virtual absl::Status LinearForward(const LinearShape& shape, absl::Span<const T> input,
                                     absl::Span<const T> weight, absl::Span<const T> bias,
                                     absl::Span<T> output) const = 0;
  virtual absl::Status LinearBackward(const LinearShape& shape, absl::Span<const T> input,
                                      absl::Span<const T> weight,
                                      absl::Span<const T> output_gradient,
                                      absl::Span<T> input_gradient,
                                      absl::Span<Wide<T>> weight_gradient,
                                      absl::Span<Wide<T>> bias_gradient) const = 0;

  virtual absl::Status RmsNormForward(const RmsNormShape& shape, absl::Span<const T> input,
                                      absl::Span<const T> weight, absl::Span<T> output,
                                      absl::Span<Wide<T>> statistics) const = 0;
  virtual absl::Status RmsNormBackward(const RmsNormShape& shape, absl::Span<const T> input,
                                       absl::Span<const T> weight,
                                       absl::Span<const Wide<T>> statistics,
                                       absl::Span<const T> output_gradient,
                                       absl::Span<T> input_gradient,
                                       absl::Span<Wide<T>> weight_gradient) const = 0;

  // Forward with `turn` 1, backward with -1.
  virtual absl::Status Rotary(const RotaryShape& shape, Wide<T> turn,
                              absl::Span<const Wide<T>> table, absl::Span<const T> input,
                              absl::Span<T> output) const = 0;

  virtual absl::Status SoftmaxCrossEntropyForward(const SoftmaxCrossEntropyShape& shape,
                                                  absl::Span<const T> logits,
                                                  absl::Span<const int32_t> targets,
                                                  double* loss_sum) const = 0;
  virtual absl::Status SoftmaxCrossEntropyBackward(const SoftmaxCrossEntropyShape& shape,
                                                   absl::Span<const T> logits,
                                                   absl::Span<const int32_t> targets,
                                                   absl::Span<T> logits_gradient) const = 0;

  virtual absl::Status SwiGluForward(const SwiGluShape& shape, absl::Span<const T> input,
                                     absl::Span<T> output) const = 0;
  virtual absl::Status SwiGluBackward(const SwiGluShape& shape, absl::Span<const T> input,
                                      absl::Span<const T> output_gradient,
                                      absl::Span<T> input_gradient) const = 0;

  virtual absl::Status AdamW(const AdamWStep& step,
                             absl::Span<const AdamWTensor<T>> tensors) const = 0;

  virtual absl::Status SumsOfSquares(absl::Span<const absl::Span<const T>> tensors,
                                     double* sums) const = 0;

  virtual absl::Status Round(absl::Span<const Wide<T>> from, absl::Span<T> to) const = 0;

  // Neighbours together; these call the kernels above one after the other.
  virtual absl::Status AddNormForward(const NormShape& shape,
                                      const AddNormTensors<T>& tensors) const;
  virtual absl::Status NormBackwardOnto(const NormShape& shape,
                                        const NormGradientTensors<T>& tensors) const;
  virtual absl::Status LinearGeluForward(const LinearShape& shape,
                                         const LinearGeluTensors<T>& tensors) const;
  virtual absl::Status GeluLinearBackward(const LinearShape& shape,
                                          const GeluLinearGradientTensors<T>& tensors) const;
};

extern template class OperatorKernels<float>;
extern template class OperatorKernels<double>;
extern template class OperatorKernels<BFloat16>;

template <typename T>
const OperatorKernels<T>& KernelsOf(const Backend& backend) {
  return backend.Kernels(T{});
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_OPERATOR_KERNELS_H_
