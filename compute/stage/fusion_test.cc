#include "compute/stage/fusion.h"

#include <string>

#include "compute/stage/testing/test_graphs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// "first+next" of every pair.
std::vector<std::string> Pairs(const model::Graph& graph, const std::vector<Fusion>& fusions,
                               Fusion kind) {
  std::vector<std::string> pairs;
  for (size_t i = 0; i + 1 < graph.ops.size(); ++i) {
    if (fusions[i] == kind) pairs.push_back(graph.ops[i].name + "+" + graph.ops[i + 1].name);
  }
  return pairs;
}

TEST(FusionTest, OfGpt2) {
  const model::Graph graph = Gpt2(2, 24, 3, true);
  const FusionPlan plan = PlanFusions(graph, Whole(graph));
  const auto ending = [](const std::string& a, const std::string& b) {
    return ::testing::MatchesRegex(".*" + a + "\\+.*" + b + ".*");
  };
  // The first norm of the first block reads the embedding.
  EXPECT_EQ(Pairs(graph, plan.forward, Fusion::kAddNorm).size(), 4u);
  EXPECT_EQ(Pairs(graph, plan.forward, Fusion::kLinearGelu).size(), 2u);
  EXPECT_EQ(Pairs(graph, plan.backward, Fusion::kGeluLinear).size(), 2u);
  EXPECT_THAT(Pairs(graph, plan.forward, Fusion::kLinearGelu), Each(ending("", "gelu")));
  EXPECT_THAT(Pairs(graph, plan.backward, Fusion::kGeluLinear), Each(ending("gelu", "")));
}

TEST(FusionTest, OfEveryKind) {
  const model::Graph graph = EveryKindGraph(true);
  const FusionPlan plan = PlanFusions(graph, Whole(graph));
  EXPECT_THAT(Pairs(graph, plan.forward, Fusion::kAddNorm), ElementsAre("sum+ln"));
  // Without a bias there is nothing to gain; the GELU is read by a sum.
  EXPECT_THAT(Pairs(graph, plan.forward, Fusion::kLinearGelu), ElementsAre());
  EXPECT_THAT(Pairs(graph, plan.backward, Fusion::kGeluLinear), ElementsAre());
}

TEST(FusionTest, PairsLieWithinTheStage) {
  const model::Graph graph = Gpt2(2, 24, 3, true);
  const FusionPlan whole = PlanFusions(graph, Whole(graph));
  for (int cut : graph.CutPoints()) {
    const FusionPlan front = PlanFusions(graph, {0, cut});
    const FusionPlan back = PlanFusions(graph, {cut, static_cast<int>(graph.ops.size())});
    for (int i = 0; i < static_cast<int>(graph.ops.size()); ++i) {
      const bool is_cut = i + 1 == cut;
      EXPECT_EQ(i < cut ? front.forward[i] : back.forward[i],
                is_cut ? Fusion::kNone : whole.forward[i]);
      EXPECT_EQ(i < cut ? front.backward[i] : back.backward[i],
                is_cut ? Fusion::kNone : whole.backward[i]);
      EXPECT_EQ(i < cut ? back.forward[i] : front.forward[i], Fusion::kNone);
    }
  }
}

TEST(FusionTest, MemoryDecides) {
  float memory[100] = {};
  const auto part = [&](size_t first) { return absl::MakeSpan(memory).subspan(first, 10); };
  OpCall<float> sum, norm;
  sum.inputs = {part(0), part(10)};
  sum.output = norm.inputs[0] = part(20);
  const auto add_norm = [&](absl::Span<float> output, absl::Span<float> statistics) {
    norm.output = output;
    norm.statistics = statistics;
    return MayRunTogether(Fusion::kAddNorm, sum, norm);
  };
  EXPECT_TRUE(add_norm(part(30), part(40)));
  EXPECT_TRUE(add_norm(part(0), part(40))) << "the row's own place";
  EXPECT_FALSE(add_norm(part(5), part(40))) << "another row's";
  EXPECT_FALSE(add_norm(part(30), part(12))) << "statistics over an input";

  OpCall<float> linear, gelu;
  linear.inputs[0] = part(0);
  linear.output = gelu.inputs[0] = part(20);
  const auto linear_gelu = [&](absl::Span<float> output) {
    gelu.output = output;
    return MayRunTogether(Fusion::kLinearGelu, linear, gelu);
  };
  EXPECT_TRUE(linear_gelu(part(30)));
  EXPECT_FALSE(linear_gelu(part(0))) << "the product still reads it";
  EXPECT_FALSE(linear_gelu(part(20))) << "backward reads it";

  linear.output_gradient = part(50);
  const auto gelu_linear = [&](absl::Span<float> gradient) {
    gelu.input_gradients[0] = gradient;
    return MayRunTogether(Fusion::kGeluLinear, linear, gelu);
  };
  EXPECT_TRUE(gelu_linear(part(60)));
  EXPECT_FALSE(gelu_linear(part(55)));
  EXPECT_FALSE(gelu_linear(part(20)));
  EXPECT_FALSE(MayRunTogether(Fusion::kNone, linear, gelu));
}

}  // namespace
}  // namespace longhaul::compute
