#include "data/batches.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::data {
namespace {

using testing::HasSubstr;

// Token i is i, so that every row tells its position.
class CountingTokens : public TokenSource {
 public:
  explicit CountingTokens(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  void Read(int64_t begin, absl::Span<int32_t> out) const override {
    ASSERT_GE(begin, 0);
    ASSERT_LE(begin + static_cast<int64_t>(out.size()), size_);
    std::iota(out.begin(), out.end(), static_cast<int32_t>(begin));
  }
  int32_t MaxToken() const override { return static_cast<int32_t>(size_ - 1); }

 private:
  const int64_t size_;
};

const Documents kPacked;

struct MicroBatch {
  explicit MicroBatch(int64_t rows) : tokens(rows, -7), targets(rows, -7) {}
  std::vector<int32_t> tokens, targets;
};

MicroBatch TrainBatch(const Batches& batches, int64_t step, int64_t m, int64_t rows) {
  MicroBatch batch(rows);
  batches.Train(step, m, absl::MakeSpan(batch.tokens), absl::MakeSpan(batch.targets));
  return batch;
}

TEST(SplitTokens, SplitsByPosition) {
  const Split split = *SplitTokens(1115394, 0.1, 64);
  EXPECT_EQ(split.train_tokens, 1003854);  // nanoGPT's figures for tiny Shakespeare
  EXPECT_EQ(split.validation_tokens, 111540);
  EXPECT_EQ(SplitTokens(100, 0, 64)->validation_tokens, 0);
}

TEST(SplitTokens, RefusesPartsNotLongerThanOneContext) {
  EXPECT_TRUE(SplitTokens(65, 0, 64).ok());
  const auto train = SplitTokens(64, 0, 64);
  EXPECT_EQ(train.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(train.status().message(), HasSubstr("64 of 64 tokens"));
  EXPECT_THAT(train.status().message(), HasSubstr("one context of 64"));
  EXPECT_THAT(SplitTokens(640, 0.1, 64).status().message(),
              HasSubstr("validation part has 64 of 640"));
  EXPECT_TRUE(SplitTokens(650, 0.1, 64).ok());
  EXPECT_FALSE(SplitTokens(0, 0, 1).ok());
}

TEST(TrainBatches, RowsAreConsecutiveAndTargetsOneLater) {
  const CountingTokens source(1000);
  const Batches batches(source, kPacked, {900, 100}, {5, 3, 8});
  for (int64_t step = 1; step <= 50; ++step) {
    const MicroBatch batch = TrainBatch(batches, step, 1, 24);
    for (int row = 0; row < 24; ++row) {
      EXPECT_EQ(batch.targets[row], batch.tokens[row] + 1);
      EXPECT_LT(batch.targets[row], 900);  // never from the validation part
      if (row % 8 == 0) continue;
      EXPECT_EQ(batch.tokens[row], batch.tokens[row - 1] + 1);
    }
  }
}

// What a sequence sees depends on (seed, step, sequence), not on how sequences are grouped.
TEST(TrainBatches, DoNotDependOnTheMicroBatch) {
  const CountingTokens source(1000);
  const Batches whole(source, kPacked, {1000, 0}, {5, 12, 4});
  const MicroBatch expected = TrainBatch(whole, 3, 0, 48);
  for (const int64_t micro_batch : {1, 2, 3, 6}) {
    const Batches parts(source, kPacked, {1000, 0}, {5, micro_batch, 4});
    MicroBatch joined(0);
    for (int64_t m = 12 / micro_batch - 1; m >= 0; --m) {  // in any order
      const MicroBatch part = TrainBatch(parts, 3, m, micro_batch * 4);
      joined.tokens.insert(joined.tokens.begin(), part.tokens.begin(), part.tokens.end());
    }
    EXPECT_EQ(joined.tokens, expected.tokens);
  }
}

TEST(TrainBatches, DifferBySeedStepAndSequence) {
  const CountingTokens source(1 << 30);
  std::set<int32_t> starts;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32}) {
    const Batches batches(source, kPacked, {1 << 30, 0}, {seed, 1, 1});
    for (int64_t step = 1; step <= 10; ++step) {
      for (int64_t m = 0; m < 10; ++m) starts.insert(TrainBatch(batches, step, m, 1).tokens[0]);
    }
  }
  EXPECT_EQ(starts.size(), 300u);
}

// Every start, the last one included, and each about as often (chi-squared, 9 degrees of freedom:
// above 27.9 once in a thousand).
TEST(TrainBatches, StartsAreUniform) {
  constexpr int64_t kContext = 5, kStarts = 10, kDraws = 20000;
  const CountingTokens source(kStarts + kContext);
  const Batches batches(source, kPacked, {kStarts + kContext, 0}, {1, 1, kContext});
  std::array<int, kStarts> counts = {};
  for (int64_t step = 1; step <= kDraws; ++step) {
    const int32_t start = TrainBatch(batches, step, 0, kContext).tokens[0];
    ASSERT_LT(start, kStarts);
    ++counts[start];
  }
  double chi_squared = 0;
  for (const int count : counts) {
    const double expected = double{kDraws} / kStarts;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_squared, 27.9);
}

// Validation against a list of all (input, target) pairs.
TEST(ValidationBatches, CoverEveryTokenOnce) {
  for (const int64_t validation : {0, 1, 7, 8, 9, 23, 24, 25, 31}) {
    const int64_t train = 40;
    const CountingTokens source(train + validation);
    const Batches batches(source, kPacked, {train, validation}, {1, 3, 8});
    EXPECT_EQ(batches.validation_targets(), validation);
    EXPECT_EQ(batches.validation_micro_batches(), (validation + 23) / 24);
    std::vector<int32_t> seen;
    for (int64_t m = 0; m < batches.validation_micro_batches(); ++m) {
      MicroBatch batch(24);
      batches.Validation(m, absl::MakeSpan(batch.tokens), absl::MakeSpan(batch.targets));
      for (int row = 0; row < 24; ++row) {
        if (batch.targets[row] == kIgnoredTarget) {
          EXPECT_EQ(batch.tokens[row], 0);
        } else {
          EXPECT_EQ(batch.tokens[row], batch.targets[row] - 1);
          seen.push_back(batch.targets[row]);
        }
      }
    }
    std::vector<int32_t> expected(validation);
    std::iota(expected.begin(), expected.end(), static_cast<int32_t>(train));
    EXPECT_EQ(seen, expected);
  }
}

// Documents of many lengths, the next ones' starts at 0, 1, 3, 4, 30, ...
const std::vector<int64_t> kStarts = {0, 1, 3, 4, 30, 31, 32, 47, 55, 63, 80, 88};
constexpr int64_t kTrainTokens = 70, kAllTokens = 90, kContext = 8;

bool BeginsDocument(int64_t position) {
  return std::find(kStarts.begin(), kStarts.end(), position) != kStarts.end();
}

TEST(MaskedBatches, AreThePackedOnesWithoutTargetsThatBeginADocument) {
  const CountingTokens source(kAllTokens);
  const Documents masked(run::DocumentMode::kMasked, kStarts);
  const Split split{kTrainTokens, kAllTokens - kTrainTokens};
  const Batches packed_batches(source, kPacked, split, {5, 3, kContext});
  const Batches masked_batches(source, masked, split, {5, 3, kContext});
  for (int64_t step = 1; step <= 100; ++step) {
    int64_t targets = 0;
    for (const int64_t m : {0, 1}) {
      const MicroBatch expected = TrainBatch(packed_batches, step, m, 24);
      const MicroBatch batch = TrainBatch(masked_batches, step, m, 24);
      EXPECT_EQ(batch.tokens, expected.tokens);
      for (int row = 0; row < 24; ++row) {
        const bool ignored = BeginsDocument(expected.targets[row]);
        EXPECT_EQ(batch.targets[row], ignored ? kIgnoredTarget : expected.targets[row]);
        targets += !ignored;
      }
    }
    EXPECT_EQ(masked_batches.TrainTargets(step, 2), targets);
    EXPECT_EQ(packed_batches.TrainTargets(step, 2), 48);
  }
}

TEST(SeparateBatches, HoldOneDocumentAndPadding) {
  const CountingTokens source(kAllTokens);
  const Documents documents(run::DocumentMode::kSeparate, kStarts);
  const Batches batches(source, documents, {kTrainTokens, kAllTokens - kTrainTokens},
                        {5, 1, kContext});
  std::set<int32_t> seen;
  for (int64_t step = 1; step <= 2000; ++step) {
    const MicroBatch batch = TrainBatch(batches, step, 0, kContext);
    int64_t targets = 0;
    for (int row = 0; row < kContext; ++row) {
      if (batch.targets[row] == kIgnoredTarget) {
        EXPECT_EQ(batch.tokens[row], 0);
        continue;
      }
      EXPECT_EQ(targets, row) << "padding in front of a token";
      ++targets;
      EXPECT_EQ(batch.targets[row], batch.tokens[row] + 1);
      EXPECT_LT(batch.targets[row], kTrainTokens);
      EXPECT_FALSE(BeginsDocument(batch.targets[row]));
      EXPECT_EQ(batch.tokens[row], batch.tokens[0] + row);
      seen.insert(batch.targets[row]);
    }
    EXPECT_EQ(batches.TrainTargets(step, 1), targets);
    // A window begins a whole number of contexts behind its document's first token.
    if (targets == 0) continue;
    const int64_t start =
        *std::prev(std::upper_bound(kStarts.begin(), kStarts.end(), int64_t{batch.tokens[0]}));
    EXPECT_EQ((batch.tokens[0] - start) % kContext, 0);
    EXPECT_TRUE(targets == kContext || BeginsDocument(batch.targets[targets - 1] + 1) ||
                batch.targets[targets - 1] == kTrainTokens - 1);
  }
  for (int32_t token = 1; token < kTrainTokens; ++token) {
    EXPECT_EQ(seen.count(token) == 1, !BeginsDocument(token)) << token;
  }
}

TEST(DocumentBatches, ValidationLeavesOutTokensThatBeginADocument) {
  const CountingTokens source(kAllTokens);
  for (const auto mode : {run::DocumentMode::kMasked, run::DocumentMode::kSeparate}) {
    for (const int64_t train : {62, 63, 64, 70}) {
      const Documents documents(mode, kStarts);
      const Batches batches(source, documents, {train, kAllTokens - train}, {5, 2, kContext});
      std::vector<int32_t> seen, expected;
      for (int64_t m = 0; m < batches.validation_micro_batches(); ++m) {
        MicroBatch batch(16);
        batches.Validation(m, absl::MakeSpan(batch.tokens), absl::MakeSpan(batch.targets));
        for (int row = 0; row < 16; ++row) {
          if (batch.targets[row] == kIgnoredTarget) continue;
          EXPECT_EQ(batch.tokens[row], batch.targets[row] - 1);
          seen.push_back(batch.targets[row]);
        }
      }
      for (int64_t token = train; token < kAllTokens; ++token) {
        if (!BeginsDocument(token)) expected.push_back(static_cast<int32_t>(token));
      }
      EXPECT_EQ(seen, expected);
      EXPECT_EQ(batches.validation_targets(), static_cast<int64_t>(expected.size()));
    }
  }
}

TEST(BatchesDeathTest, WrongSizesAreBugs) {
  const CountingTokens source(100);
  const Batches batches(source, kPacked, {100, 0}, {1, 2, 4});
  EXPECT_DEATH(TrainBatch(batches, 1, 0, 7), "rows 8");
  EXPECT_DEATH(TrainBatch(batches, 0, 0, 8), "step 0");
  EXPECT_DEATH(Batches(source, kPacked, {50, 0}, {1, 2, 4}), "100 tokens");
}

}  // namespace
}  // namespace longhaul::data
