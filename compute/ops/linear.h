// y = x W^T + b.
#ifndef LONGHAUL_COMPUTE_OPS_LINEAR_H_
#define LONGHAUL_COMPUTE_OPS_LINEAR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct LinearShape {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
};

// Whether every extent is sane, for operators of this shape; `op` is for the message.
absl::Status CheckShape(absl::string_view op, const LinearShape& shape);

// input [rows, in], weight [out, in], bias [out] or empty, output [rows, out]. T is float or
// double.
template <typename T>
absl::Status LinearForward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                           absl::Span<const T> weight, absl::Span<const T> bias,
                           absl::Span<T> output);

// Writes input_gradient (skipped if empty); adds to weight_gradient [out, in] and bias_gradient
// (empty without bias).
template <typename T>
absl::Status LinearBackward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                            absl::Span<const T> weight, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
                            absl::Span<Wide<T>> bias_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_LINEAR_H_
