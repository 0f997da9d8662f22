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
  // Elements from one row of the output, and of its gradient, to the next, at least `out`; 0: as
  // many. What lies between rows is neither read nor written.
  int64_t out_pitch = 0;
  int64_t pitch() const { return out_pitch == 0 ? out : out_pitch; }
};

// Whether every extent is sane, for operators of this shape; `op` is for the message.
absl::Status CheckShape(absl::string_view op, const LinearShape& shape);

// input [rows, in], weight [out, in], bias [out] or empty, output [rows, out] in rows * pitch()
// elements. T is float, double or BFloat16.
template <typename T>
absl::Status LinearForward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                           absl::Span<const T> weight, absl::Span<const T> bias,
                           absl::Span<T> output);

// output_gradient lies as the output does. Writes input_gradient (skipped if empty); adds to
// weight_gradient [out, in] and bias_gradient (empty without bias).
template <typename T>
absl::Status LinearBackward(Backend& backend, const LinearShape& shape, absl::Span<const T> input,
                            absl::Span<const T> weight, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
                            absl::Span<Wide<T>> bias_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_LINEAR_H_
