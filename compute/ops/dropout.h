// Dropout (Srivastava et al. 2014, section 10) with a mask that is a function of the element's
// place in the run, so that it depends on no partition and is drawn again rather than kept.
#ifndef LONGHAUL_COMPUTE_OPS_DROPOUT_H_
#define LONGHAUL_COMPUTE_OPS_DROPOUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

struct DropoutShape {
  int64_t rows = 0;     // whole sequences
  int64_t context = 0;  // divides rows
  int64_t width = 0;
  double probability = 0;  // of being dropped, in [0, 1)
};

// Which draws. They are RandomBits(seed, kDropout, step, op, sequence * 2^32 + c) of base/rng.h:
// element e of a sequence [context, width] takes word e / 16 % 4 of draw c = e / 64 * 16 + e % 16,
// and is dropped if that is below probability * 2^32 (rounded).
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;            // in [0, 2^32)
  int64_t first_sequence = 0;  // number of the first row's sequence in the global batch, below 2^32
  int64_t op = 0;              // operator in the whole model, in [0, 2^32)
};

// What kernels compare a draw's word with: an element whose word is below it is dropped.
uint32_t DropoutThreshold(double probability);

// output = input / (1 - probability), or 0 where dropped. Forward and, from gradient to gradient,
// backward. input and output [rows, width]; may be the same memory. T is float, double or BFloat16.
template <typename T>
absl::Status Dropout(Backend& backend, const DropoutShape& shape, const DropoutKey& key,
                     absl::Span<const T> input, absl::Span<T> output);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_DROPOUT_H_
