#include "model/family.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/limits.h"

namespace longhaul::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec Gpt2Small() {
  ModelSpec spec;
  spec.layers = 12;
  spec.hidden = 768;
  spec.heads = 12;
  spec.context = 1024;
  spec.vocab = 50257;
  return spec;
}

const Parameter* Find(const Graph& graph, const std::string& name) {
  for (const Parameter& parameter : graph.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

TEST(FamilyTest, KnowsGpt2) { EXPECT_THAT(FamilyNames(), ElementsAre("gpt2")); }

// The published sizes of GPT-2, as the Hugging Face hub's checkpoints have them.
TEST(FamilyTest, Gpt2HasThePublishedParameterCounts) {
  EXPECT_EQ(BuildGraph(Gpt2Small())->ParameterCount(), 124439808);
  ModelSpec medium = Gpt2Small();
  medium.layers = 24;
  medium.hidden = 1024;
  medium.heads = 16;
  EXPECT_EQ(BuildGraph(medium)->ParameterCount(), 354823168);
}

TEST(FamilyTest, Gpt2NamesShapesAndInitialValues) {
  const Graph graph = *BuildGraph(Gpt2Small());
  const struct {
    const char* name;
    std::vector<int64_t> shape;
    InitKind init;
    double deviation;
  } expected[] = {
      {"wte", {50257, 768}, InitKind::kNormal, 0.02},
      {"wpe", {1024, 768}, InitKind::kNormal, 0.02},
      {"h.0.ln_1.weight", {768}, InitKind::kOnes, 0},
      {"h.0.ln_1.bias", {768}, InitKind::kZeros, 0},
      {"h.3.attn.qkv.weight", {2304, 768}, InitKind::kNormal, 0.02},
      {"h.3.attn.qkv.bias", {2304}, InitKind::kZeros, 0},
      {"h.3.attn.proj.weight", {768, 768}, InitKind::kNormal, 0.02 / std::sqrt(24.0)},
      {"h.3.attn.proj.bias", {768}, InitKind::kZeros, 0},
      {"h.11.ln_2.weight", {768}, InitKind::kOnes, 0},
      {"h.11.ln_2.bias", {768}, InitKind::kZeros, 0},
      {"h.11.mlp.fc.weight", {3072, 768}, InitKind::kNormal, 0.02},
      {"h.11.mlp.fc.bias", {3072}, InitKind::kZeros, 0},
      {"h.11.mlp.proj.weight", {768, 3072}, InitKind::kNormal, 0.02 / std::sqrt(24.0)},
      {"h.11.mlp.proj.bias", {768}, InitKind::kZeros, 0},
      {"ln_f.weight", {768}, InitKind::kOnes, 0},
      {"ln_f.bias", {768}, InitKind::kZeros, 0},
  };
  for (const auto& row : expected) {
    const Parameter* parameter = Find(graph, row.name);
    ASSERT_NE(parameter, nullptr) << row.name;
    EXPECT_EQ(parameter->shape, row.shape) << row.name;
    EXPECT_EQ(parameter->init.kind, row.init) << row.name;
    EXPECT_DOUBLE_EQ(parameter->init.standard_deviation, row.deviation) << row.name;
    EXPECT_EQ(parameter->decays, row.shape.size() == 2) << row.name;
  }
  EXPECT_EQ(graph.parameters.size(), 2 + 12 * 12 + 2);
  EXPECT_EQ(Find(graph, "head.weight"), nullptr);
}

TEST(FamilyTest, UntiedHeadHasItsOwnWeight) {
  ModelSpec spec = Gpt2Small();
  spec.tied = false;
  const Graph graph = *BuildGraph(spec);
  ASSERT_NE(Find(graph, "head.weight"), nullptr);
  EXPECT_EQ(&graph.parameters.back(), Find(graph, "head.weight"));
}

TEST(FamilyTest, ErrorsNameTheKeyAndTheRemedy) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const struct {
    const char* expected;
    void (*damage)(ModelSpec&, int64_t);
  } cases[] = {
      {"model.family: 'gpt3' is not known; use one of: gpt2",
       [](ModelSpec& s, int64_t) { s.family = "gpt3"; }},
      {"model.layers: 0 is out of range; it must be from 1 to 1024",
       [](ModelSpec& s, int64_t) { s.layers = 0; }},
      {"model.layers: 9223372036854775807", [](ModelSpec& s, int64_t huge) { s.layers = huge; }},
      {"model.hidden: 9223372036854775807", [](ModelSpec& s, int64_t huge) { s.hidden = huge; }},
      {"model.hidden: -768", [](ModelSpec& s, int64_t) { s.hidden = -768; }},
      {"model.heads: 0", [](ModelSpec& s, int64_t) { s.heads = 0; }},
      {"model.context: 9223372036854775807", [](ModelSpec& s, int64_t huge) { s.context = huge; }},
      {"model.vocab: 9223372036854775807", [](ModelSpec& s, int64_t huge) { s.vocab = huge; }},
      {"model.heads: 5 does not divide model.hidden 768; use 4 or 6",
       [](ModelSpec& s, int64_t) { s.heads = 5; }},
      {"model.heads: 1000 does not divide model.hidden 768; use 768,",
       [](ModelSpec& s, int64_t) { s.heads = 1000; }},
  };
  for (const auto& test : cases) {
    ModelSpec spec = Gpt2Small();
    test.damage(spec, huge);
    const absl::Status status = BuildGraph(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.expected;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.expected));
  }
}

TEST(FamilyTest, TheLargestModelAllowedBuilds) {
  ModelSpec spec = Gpt2Small();
  spec.layers = kLayersMax;
  spec.hidden = kHiddenMax;
  spec.heads = kHiddenMax;
  spec.context = kContextMax;
  spec.vocab = kVocabMax;
  spec.tied = false;
  const absl::StatusOr<Graph> graph = BuildGraph(spec);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_GT(graph->ParameterCount(), 0);
}

}  // namespace
}  // namespace longhaul::model
