#include "compute/stage/gradient_tree.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "compute/backend/backend.h"
#include "compute/testing/counting_backend.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::compute {
namespace {

// What a micro-batch adds to element i of gradient g. Signed zeros are among them.
float Term(int micro_batch, size_t g, size_t i) {
  const auto words = RandomBits(3, RandomStream::kBatch, micro_batch, g, i);
  if (words[0] % 16 == 0) return words[0] % 32 == 0 ? 0.0f : -0.0f;
  const float value = static_cast<float>(static_cast<int32_t>(words[1])) / 1e6f;
  return words[0] % 3 == 0 ? value : value / 1000;
}

// The sum of the micro-batches in [begin, end) as the contract has it: the largest power of two
// first, halved.
float Sum(int begin, int end, size_t g, size_t i) {
  const int count = end - begin;
  if (count == 1) return 0.0f + Term(begin, g, i);
  int power = 1;
  while (2 * power <= count) power *= 2;
  const int middle = begin + (power == count ? power / 2 : power);
  return Sum(begin, middle, g, i) + Sum(middle, end, g, i);
}

// The terms must tell orders of addition apart, or the other tests prove nothing.
TEST(GradientTreeTerms, AreNumbersWhoseSumsDependOnTheOrder) {
  int nonzero = 0, different = 0;
  constexpr size_t kElements = 1000;
  for (size_t i = 0; i < kElements; ++i) {
    if (Term(0, 0, i) != 0) ++nonzero;
    float left_to_right = 0;
    for (int m = 0; m < 8; ++m) left_to_right += Term(m, 0, i);
    if (left_to_right != Sum(0, 8, 0, i)) ++different;
  }
  EXPECT_GT(nonzero, kElements * 9 / 10);
  EXPECT_GT(different, kElements / 4);
}

class GradientTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    const model::ModelSpec spec{.layers = 1, .hidden = 8, .heads = 2, .context = 4, .vocab = 11};
    graph_ = *model::BuildGraph(spec);
    StageOptions options;
    options.range = {0, static_cast<int>(graph_.ops.size())};
    options.micro_batch = 1;
    stage_ = *Stage<float>::Create(graph_, options, backend_, 1);
  }

  void RunStep(GradientTree<float>& tree, int first, int count) {
    for (int m = first; m < first + count; ++m) {
      ASSERT_EQ(tree.BeginMicroBatch(), absl::OkStatus());
      for (size_t g = 0; g < stage_->gradients().size(); ++g) {
        const absl::Span<float> values = stage_->gradients()[g].values;
        for (size_t i = 0; i < values.size(); ++i) values[i] += Term(m, g, i);
      }
      ASSERT_EQ(tree.EndMicroBatch(), absl::OkStatus());
    }
  }

  model::Graph graph_;
  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend(1);
  CountingBackend backend_{*cpu_};
  std::unique_ptr<Stage<float>> stage_;
};

TEST_F(GradientTreeTest, IsTheSumOfTheContractToTheBit) {
  for (int count = 1; count <= 17; ++count) {
    const auto tree = GradientTree<float>::Create(*stage_, count);
    ASSERT_TRUE(tree.ok()) << tree.status();
    for (const int first : {0, 100}) {
      RunStep(**tree, first, count);
      for (size_t g = 0; g < stage_->gradients().size(); ++g) {
        const absl::Span<float> values = stage_->gradients()[g].values;
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(std::bit_cast<uint32_t>(values[i]),
                    std::bit_cast<uint32_t>(Sum(first, first + count, g, i)))
              << count << " micro-batches, gradient " << g << " element " << i;
        }
      }
    }
  }
}

TEST_F(GradientTreeTest, AlignedPartsGiveTheBitsOfTheWhole) {
  const auto whole = GradientTree<float>::Create(*stage_, 8);
  RunStep(**whole, 0, 8);
  std::vector<float> expected;
  for (const auto& gradient : stage_->gradients()) {
    expected.insert(expected.end(), gradient.values.begin(), gradient.values.end());
  }
  const auto half = GradientTree<float>::Create(*stage_, 4);
  std::vector<float> sum;
  for (const int first : {0, 4}) {
    RunStep(**half, first, 4);
    size_t place = 0;
    for (const auto& gradient : stage_->gradients()) {
      for (const float value : gradient.values) {
        if (first == 0) {
          sum.push_back(value);
        } else {
          sum[place++] += value;
        }
      }
    }
  }
  EXPECT_EQ(sum, expected);
}

TEST_F(GradientTreeTest, KeepsTheLogarithmOfTheMicroBatches) {
  EXPECT_EQ(GradientTreeLevels(1), 0);
  EXPECT_EQ(GradientTreeLevels(2), 1);
  EXPECT_EQ(GradientTreeLevels(8), 3);
  EXPECT_EQ(GradientTreeLevels(9), 4);
  const int64_t before = backend_.bytes();
  const auto bytes = [&](int micro_batches) {
    const auto tree = GradientTree<float>::Create(*stage_, micro_batches);
    return backend_.bytes() - before;
  };
  EXPECT_EQ(bytes(1), 0);
  EXPECT_GT(bytes(2), 0);
  EXPECT_EQ(bytes(8), 3 * bytes(2));
}

}  // namespace
}  // namespace longhaul::compute
