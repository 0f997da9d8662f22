// The CPU kernels of root-mean-square normalisation.
#ifndef LONGHAUL_COMPUTE_OPS_RMS_NORM_CPU_H_
#define LONGHAUL_COMPUTE_OPS_RMS_NORM_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/rms_norm.h"

namespace longhaul::compute::cpu {

// As in rms_norm.h; arguments have been checked.
template <typename T>
void RmsNormForward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                    absl::Span<const T> weight, absl::Span<T> output, absl::Span<T> statistics);
template <typename T>
void RmsNormBackward(Backend& backend, const RmsNormShape& shape, absl::Span<const T> input,
                     absl::Span<const T> weight, absl::Span<const T> statistics,
                     absl::Span<const T> output_gradient, absl::Span<T> input_gradient,
                     absl::Span<T> weight_gradient);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_RMS_NORM_CPU_H_
