// SwiGLU (Shazeer 2020, section 2) without its projections: silu(gate) * up.
#ifndef LONGHAUL_COMPUTE_OPS_SWIGLU_H_
#define LONGHAUL_COMPUTE_OPS_SWIGLU_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct SwiGluShape {
  int64_t rows = 0;
  int64_t width = 0;  // of the output
};

// input [rows, 2*width]: gate | up in each row; output [rows, width]. T is float, double or
// BFloat16.
template <typename T>
absl::Status SwiGluForward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                           absl::Span<T> output);

// Writes input_gradient; it may be the same memory as input.
template <typename T>
absl::Status SwiGluBackward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                            absl::Span<const T> output_gradient, absl::Span<T> input_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_SWIGLU_H_
