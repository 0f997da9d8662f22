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

TEST(FamilyTest, KnowsTheFamilies) { EXPECT_THAT(FamilyNames(), ElementsAre("gpt2", "llama")); }

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

ModelSpec Llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn) {
  ModelSpec spec;
  spec.family = "llama";
  spec.layers = layers;
  spec.hidden = hidden;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.ffn = ffn;
  spec.context = 2048;
  return spec;
}

// The published sizes, as the Hugging Face hub's checkpoints have them: Llama 3.2 1B, TinyLlama
// 1.1B and Qwen2 0.5B.
TEST(FamilyTest, LlamaHasThePublishedParameterCounts) {
  ModelSpec llama = Llama(16, 2048, 32, 8, 8192);
  llama.vocab = 128256;
  llama.rope_scaling.factor = 32;
  EXPECT_EQ(BuildGraph(llama)->ParameterCount(), 1235814400);
  ModelSpec tiny = Llama(22, 2048, 32, 4, 5632);
  tiny.vocab = 32000;
  tiny.tied = false;
  EXPECT_EQ(BuildGraph(tiny)->ParameterCount(), 1100048384);
  ModelSpec qwen = Llama(24, 896, 14, 2, 4864);
  qwen.vocab = 151936;
  qwen.qkv_bias = true;
  EXPECT_EQ(BuildGraph(qwen)->ParameterCount(), 494032768);
}

TEST(FamilyTest, LlamaNamesAndShapes) {
  ModelSpec spec = Llama(2, 64, 8, 2, 0);
  spec.vocab = 100;
  spec.tied = false;
  const Graph graph = *BuildGraph(spec);
  const struct {
    const char* name;
    std::vector<int64_t> shape;
  } expected[] = {
      {"embed", {100, 64}},
      {"layers.0.input_norm.weight", {64}},
      {"layers.1.attn.qkv.weight", {(8 + 2 * 2) * 8, 64}},
      {"layers.1.attn.proj.weight", {64, 64}},
      {"layers.1.post_norm.weight", {64}},
      {"layers.1.mlp.gate_up.weight", {2 * 192, 64}},  // 8 * 64 / 3, to a multiple of 64
      {"layers.1.mlp.down.weight", {64, 192}},
      {"norm.weight", {64}},
      {"head.weight", {100, 64}},
  };
  for (const auto& row : expected) {
    const Parameter* parameter = Find(graph, row.name);
    ASSERT_NE(parameter, nullptr) << row.name;
    EXPECT_EQ(parameter->shape, row.shape) << row.name;
    EXPECT_EQ(parameter->decays, row.shape.size() == 2) << row.name;
  }
  EXPECT_EQ(graph.parameters.size(), 1 + 2 * 6 + 2);
}

TEST(FamilyTest, DropoutStandsBehindTheEmbeddingAndOnBothBranches) {
  ModelSpec spec = Gpt2Small();
  spec.dropout = 0.25;
  int dropouts = 0;
  const Graph graph = *BuildGraph(spec);
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::kDropout) continue;
    ++dropouts;
    EXPECT_EQ(op.probability, 0.25);
  }
  EXPECT_EQ(dropouts, 1 + 2 * 12);
  EXPECT_EQ(graph.ops[1].kind, OpKind::kDropout);
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
      {"model.family: 'gpt3' is not known; use one of: gpt2, llama",
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
