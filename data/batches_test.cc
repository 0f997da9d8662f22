#include "data/batches.h"

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
  const Batches batches(source, {900, 100}, 5, 3, 8);
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
  const Batches whole(source, {1000, 0}, 5, 12, 4);
  const MicroBatch expected = TrainBatch(whole, 3, 0, 48);
  for (const int64_t micro_batch : {1, 2, 3, 6}) {
    const Batches parts(source, {1000, 0}, 5, micro_batch, 4);
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
    const Batches batches(source, {1 << 30, 0}, seed, 1, 1);
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
  const Batches batches(source, {kStarts + kContext, 0}, 1, 1, kContext);
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
    const Batches batches(source, {train, validation}, 1, 3, 8);
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

TEST(BatchesDeathTest, WrongSizesAreBugs) {
  const CountingTokens source(100);
  const Batches batches(source, {100, 0}, 1, 2, 4);
  EXPECT_DEATH(TrainBatch(batches, 1, 0, 7), "rows 8");
  EXPECT_DEATH(TrainBatch(batches, 0, 0, 8), "step 0");
  EXPECT_DEATH(Batches(source, {50, 0}, 1, 2, 4), "100 tokens");
}

}  // namespace
}  // namespace longhaul::data
