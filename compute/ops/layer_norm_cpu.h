// The CPU kernels of layer normalisation.
#ifndef LONGHAUL_COMPUTE_OPS_LAYER_NORM_CPU_H_
#define LONGHAUL_COMPUTE_OPS_LAYER_NORM_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/layer_norm.h"

namespace longhaul::compute::cpu {

// As in layer_norm.h; arguments have been checked.
template <typename T>
void LayerNormForward(Backend& backend, const LayerNormShape& shape, absl::Span<const T> input,
                      absl::Span<const T> weight, absl::Span<const T> bias, absl::Span<T> output,
                      absl::Span<T> statistics);
template <typename T>
void LayerNormBackward(Backend& backend, const LayerNormShape& shape, absl::Span<const T> input,
                       absl::Span<const T> weight, absl::Span<const T> statistics,
                       absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                       absl::Span<T> weight_gradient, absl::Span<T> bias_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_LAYER_NORM_CPU_H_
