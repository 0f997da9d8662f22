#include "data/batches.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/rng.h"

namespace longhaul::data {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

absl::StatusOr<Split> SplitTokens(int64_t tokens, double validation_fraction, int64_t context) {
  LH_CHECK(tokens >= 0 && context >= 1, tokens, " tokens, context ", context);
  LH_CHECK(validation_fraction >= 0 && validation_fraction < 1, validation_fraction);
  Split split;
  split.train_tokens =
      static_cast<int64_t>(std::floor(static_cast<double>(tokens) * (1.0 - validation_fraction)));
  split.validation_tokens = tokens - split.train_tokens;
  if (split.train_tokens <= context) {
    return absl::InvalidArgumentError(
        absl::StrCat("the training part has ", split.train_tokens, " of ", tokens,
                     " tokens, but must be longer than one context of ", context,
                     "; use more data or a smaller model.context"));
  }
  if (validation_fraction > 0 && split.validation_tokens <= context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the validation part has ", split.validation_tokens, " of ", tokens,
        " tokens, but must be longer than one context of ", context,
        "; use more data, a larger data.validation_fraction, or a smaller model.context"));
  }
  return split;
}

Batches::Batches(const TokenSource& source, Split split, uint64_t seed, int64_t micro_batch,
                 int64_t context)
    : source_(source), split_(split), seed_(seed), micro_batch_(micro_batch), context_(context) {
  LH_CHECK(micro_batch >= 1 && context >= 1, micro_batch, " sequences of ", context);
  LH_CHECK(split.train_tokens > context && split.validation_tokens >= 0 &&
               split.train_tokens + split.validation_tokens == source.size(),
           split.train_tokens, " + ", split.validation_tokens, " of ", source.size(), " tokens");
}

void Batches::Train(int64_t step, int64_t m, absl::Span<int32_t> tokens,
                    absl::Span<int32_t> targets) const {
  const auto rows = static_cast<size_t>(micro_batch_ * context_);
  LH_CHECK(tokens.size() == rows && targets.size() == rows, "rows ", rows);
  LH_CHECK(step >= 1 && m >= 0, "step ", step, " micro-batch ", m);
  // The last possible start leaves room for the target of the last row.
  const auto starts = static_cast<uint64_t>(split_.train_tokens - context_);
  for (int64_t b = 0; b < micro_batch_; ++b) {
    const auto sequence = static_cast<uint64_t>(m * micro_batch_ + b);
    const auto bits =
        RandomBits(seed_, RandomStream::kBatch, static_cast<uint32_t>(step),
                   static_cast<uint32_t>(static_cast<uint64_t>(step) >> 32), sequence);
    const auto start =
        static_cast<int64_t>(RandomBelow(starts, static_cast<uint64_t>(bits[0]) << 32 | bits[1]));
    source_.Read(start, tokens.subspan(b * context_, context_));
    source_.Read(start + 1, targets.subspan(b * context_, context_));
  }
}

int64_t ValidationMicroBatches(const Split& split, int64_t micro_batch, int64_t context) {
  return CeilDivide(CeilDivide(split.validation_tokens, context), micro_batch);
}

int64_t Batches::validation_micro_batches() const {
  return ValidationMicroBatches(split_, micro_batch_, context_);
}

int64_t Batches::validation_targets() const { return split_.validation_tokens; }

void Batches::Validation(int64_t m, absl::Span<int32_t> tokens, absl::Span<int32_t> targets) const {
  const auto rows = static_cast<size_t>(micro_batch_ * context_);
  LH_CHECK(tokens.size() == rows && targets.size() == rows, "rows ", rows);
  LH_CHECK(m >= 0 && m < validation_micro_batches(), "validation micro-batch ", m);
  std::fill(tokens.begin(), tokens.end(), 0);
  std::fill(targets.begin(), targets.end(), kIgnoredTarget);
  for (int64_t b = 0; b < micro_batch_; ++b) {
    const int64_t first = (m * micro_batch_ + b) * context_;  // in the validation part
    const int64_t count = std::min(context_, split_.validation_tokens - first);
    if (count <= 0) return;
    const int64_t position = split_.train_tokens + first;
    source_.Read(position - 1, tokens.subspan(b * context_, count));
    source_.Read(position, targets.subspan(b * context_, count));
  }
}

}  // namespace longhaul::data
