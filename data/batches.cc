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

Batches::Batches(const TokenSource& source, const Documents& documents, Split split,
                 const BatchOptions& options)
    : source_(source),
      documents_(documents),
      split_(split),
      seed_(options.seed),
      micro_batch_(options.micro_batch),
      context_(options.context) {
  LH_CHECK(micro_batch_ >= 1 && context_ >= 1, micro_batch_, " sequences of ", context_);
  LH_CHECK(split.train_tokens > context_ && split.validation_tokens >= 0 &&
               split.train_tokens + split.validation_tokens == source.size(),
           split.train_tokens, " + ", split.validation_tokens, " of ", source.size(), " tokens");
}

Batches::Window Batches::TrainWindow(int64_t step, int64_t sequence) const {
  LH_CHECK(step >= 1 && sequence >= 0, "step ", step, " sequence ", sequence);
  const bool separate = documents_.mode() == run::DocumentMode::kSeparate;
  // The last possible start leaves room for the target of the last row.
  const int64_t positions = separate ? split_.train_tokens : split_.train_tokens - context_;
  const auto bits = RandomBits(seed_, RandomStream::kBatch, static_cast<uint32_t>(step),
                               static_cast<uint32_t>(static_cast<uint64_t>(step) >> 32),
                               static_cast<uint64_t>(sequence));
  const auto position = static_cast<int64_t>(RandomBelow(
      static_cast<uint64_t>(positions), static_cast<uint64_t>(bits[0]) << 32 | bits[1]));
  if (separate) return SeparateWindow(position);
  return {position, context_};
}

Batches::Window Batches::SeparateWindow(int64_t position) const {
  const int64_t begin = documents_.StartOf(position);
  // Of tokens that have a successor in the document; its last token goes with the one before it.
  const int64_t inputs = documents_.EndOf(position, split_.train_tokens) - begin - 1;
  if (inputs == 0) return {begin, 0};
  const int64_t offset = std::min(position - begin, inputs - 1) / context_ * context_;
  return {begin + offset, std::min(context_, inputs - offset)};
}

void Batches::Fill(const Window& window, absl::Span<int32_t> tokens,
                   absl::Span<int32_t> targets) const {
  source_.Read(window.start, tokens.first(window.count));
  source_.Read(window.start + 1, targets.first(window.count));
  for (const int64_t start :
       documents_.StartsIn(window.start + 1, window.start + 1 + window.count)) {
    targets[start - window.start - 1] = kIgnoredTarget;
  }
}

int64_t Batches::CountTargets(const Window& window) const {
  const auto ignored =
      documents_.StartsIn(window.start + 1, window.start + 1 + window.count).size();
  return window.count - static_cast<int64_t>(ignored);
}

void Batches::Train(int64_t step, int64_t m, absl::Span<int32_t> tokens,
                    absl::Span<int32_t> targets) const {
  const auto rows = static_cast<size_t>(micro_batch_ * context_);
  LH_CHECK(tokens.size() == rows && targets.size() == rows, "rows ", rows);
  LH_CHECK(m >= 0, "micro-batch ", m);
  std::fill(tokens.begin(), tokens.end(), 0);
  std::fill(targets.begin(), targets.end(), kIgnoredTarget);
  for (int64_t b = 0; b < micro_batch_; ++b) {
    Fill(TrainWindow(step, m * micro_batch_ + b), tokens.subspan(b * context_, context_),
         targets.subspan(b * context_, context_));
  }
}

int64_t Batches::TrainTargets(int64_t step, int64_t micro_batches) const {
  const int64_t sequences = micro_batches * micro_batch_;
  if (documents_.mode() == run::DocumentMode::kPacked) return sequences * context_;
  int64_t targets = 0;
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    targets += CountTargets(TrainWindow(step, sequence));
  }
  return targets;
}

int64_t ValidationMicroBatches(const Split& split, int64_t micro_batch, int64_t context) {
  return CeilDivide(CeilDivide(split.validation_tokens, context), micro_batch);
}

int64_t Batches::validation_micro_batches() const {
  return ValidationMicroBatches(split_, micro_batch_, context_);
}

int64_t Batches::validation_targets() const {
  if (split_.validation_tokens == 0) return 0;
  return CountTargets({split_.train_tokens - 1, split_.validation_tokens});
}

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
    Fill({split_.train_tokens + first - 1, count}, tokens.subspan(b * context_, context_),
         targets.subspan(b * context_, context_));
  }
}

}  // namespace longhaul::data
