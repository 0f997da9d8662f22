// Rotary position embedding (Su et al. 2021, section 3.4.2) in the half-split layout of Hugging
// Face's models: elements i and i + head_width/2 of a head are a pair.
#ifndef LONGHAUL_COMPUTE_OPS_ROTARY_H_
#define LONGHAUL_COMPUTE_OPS_ROTARY_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "model/rotary_scaling.h"

namespace longhaul::compute {

// What the table depends on.
struct RotarySpec {
  int64_t context = 0;
  int64_t head_width = 0;  // even
  double theta = 10000;    // base of the frequencies, positive
  model::RotaryScaling scaling;
};

// Writes cosines | sines of the angles of each position to table [context, head_width]: angle i of
// position t is t * theta^(-2i / head_width), the frequency scaled as `spec` says. Computed on the
// host by base/elementary.h and rounded once.
template <typename T>
absl::Status RotaryTable(Backend& backend, const RotarySpec& spec, absl::Span<Wide<T>> table);

struct RotaryShape {
  int64_t rows = 0;
  int64_t context = 0;     // position of row r is r % context
  int64_t heads = 0;       // that are turned: those of queries and keys
  int64_t head_width = 0;  // even
  int64_t row_width = 0;   // at least heads * head_width; the elements after these are copied
};

// input, output [rows, row_width]; may be the same memory. table as above.
template <typename T>
absl::Status RotaryForward(Backend& backend, const RotaryShape& shape,
                           absl::Span<const Wide<T>> table, absl::Span<const T> input,
                           absl::Span<T> output);

// Turns the other way. Writes input_gradient; it may be the same memory as output_gradient.
template <typename T>
absl::Status RotaryBackward(Backend& backend, const RotaryShape& shape,
                            absl::Span<const Wide<T>> table, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_ROTARY_H_
