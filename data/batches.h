// Batches as pure functions: which tokens sequence i of step s sees depends on the seed alone.
#ifndef LONGHAUL_DATA_BATCHES_H_
#define LONGHAUL_DATA_BATCHES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/token_source.h"

namespace longhaul::data {

// Target that the loss ignores (padding of the last validation micro-batch).
inline constexpr int32_t kIgnoredTarget = -1;

// Training part [0, train_tokens), validation part [train_tokens, tokens), split by position as
// nanoGPT does: train_tokens = floor(tokens * (1 - validation_fraction)).
struct Split {
  int64_t train_tokens = 0;
  int64_t validation_tokens = 0;
};
// InvalidArgument with the numbers if the training part, or the validation part where a fraction
// above 0 asks for one, is not longer than one context.
absl::StatusOr<Split> SplitTokens(int64_t tokens, double validation_fraction, int64_t context);

// Micro-batches that cover the validation part once; 0 without one. A stage that never opens the
// tokens knows its program by this.
int64_t ValidationMicroBatches(const Split& split, int64_t micro_batch, int64_t context);

// Fills `tokens` and `targets` (each rows = micro_batch * context, row b*context + t; targets are
// the tokens one position later) for micro-batch m of 1-based `step`: sequence m*micro_batch + b
// starts at a uniformly drawn training position (nanoGPT's sampling), drawn by (seed, step,
// sequence). Thread-safe; `source` must outlive it. Wrong sizes and positions are broken
// invariants.
class Batches {
 public:
  Batches(const TokenSource& source, Split split, uint64_t seed, int64_t micro_batch,
          int64_t context);
  void Train(int64_t step, int64_t m, absl::Span<int32_t> tokens,
             absl::Span<int32_t> targets) const;

  // Validation covers every token of the validation part once as a target, in windows of one
  // context one after another (the first token is predicted from the last training token). Rows
  // behind the end have token 0 and kIgnoredTarget.
  int64_t validation_micro_batches() const;
  int64_t validation_targets() const;
  void Validation(int64_t m, absl::Span<int32_t> tokens, absl::Span<int32_t> targets) const;

 private:
  const TokenSource& source_;
  const Split split_;
  const uint64_t seed_;
  const int64_t micro_batch_;
  const int64_t context_;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_BATCHES_H_
