// Batches as pure functions: which tokens sequence i of step s sees depends on the seed alone.
#ifndef LONGHAUL_DATA_BATCHES_H_
#define LONGHAUL_DATA_BATCHES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/ignored_target.h"
#include "data/documents.h"
#include "data/token_source.h"

namespace longhaul::data {

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

struct BatchOptions {
  uint64_t seed = 0;
  int64_t micro_batch = 0;  // sequences
  int64_t context = 0;      // tokens of a sequence
};

// Fills `tokens` and `targets` (each rows = micro_batch * context, row b*context + t; targets are
// the tokens one position later) for micro-batch m of 1-based `step`. Sequence m*micro_batch + b
// follows from a training position drawn uniformly by (seed, step, sequence):
//   packed    it starts there (nanoGPT's sampling);
//   masked    the same tokens, but a target that begins a document is ignored;
//   separate  the document around the position is cut into windows of one context, and the sequence
//             is the window that holds the position; behind it come rows of padding.
// Padding has token 0 and kIgnoredTarget. Thread-safe; `source` and `documents` must outlive it.
// Wrong sizes and positions are broken invariants.
class Batches {
 public:
  Batches(const TokenSource& source, const Documents& documents, Split split,
          const BatchOptions& options);

  void Train(int64_t step, int64_t m, absl::Span<int32_t> tokens,
             absl::Span<int32_t> targets) const;
  // Targets of a step's `micro_batches` that are not ignored; may be 0 unless packed. Reads no
  // tokens.
  int64_t TrainTargets(int64_t step, int64_t micro_batches) const;

  // Validation covers every token of the validation part once as a target, in windows of one
  // context one after another (the first token is predicted from the last training token), whatever
  // sequences are for training; unless packed, tokens that begin a document are no targets. Rows
  // behind the end are padding.
  int64_t validation_micro_batches() const;
  int64_t validation_targets() const;  // that are not ignored
  void Validation(int64_t m, absl::Span<int32_t> tokens, absl::Span<int32_t> targets) const;

 private:
  // Tokens [start, start + count) and the targets one later.
  struct Window {
    int64_t start = 0;
    int64_t count = 0;  // at most one context
  };
  Window TrainWindow(int64_t step, int64_t sequence) const;
  Window SeparateWindow(int64_t position) const;
  // Into rows that are padding so far.
  void Fill(const Window& window, absl::Span<int32_t> tokens, absl::Span<int32_t> targets) const;
  int64_t CountTargets(const Window& window) const;

  const TokenSource& source_;
  const Documents& documents_;
  const Split split_;
  const uint64_t seed_;
  const int64_t micro_batch_;
  const int64_t context_;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_BATCHES_H_
