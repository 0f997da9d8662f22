#include "model/cost.h"

#include <limits>

#include "gtest/gtest.h"
#include "model/family.h"
#include "model/limits.h"

namespace longhaul::model {
namespace {

Graph Gpt2Small(bool tied = true) {
  ModelSpec spec;
  spec.layers = 12;
  spec.hidden = 768;
  spec.heads = 12;
  spec.context = 1024;
  spec.vocab = 50257;
  spec.tied = tied;
  return *BuildGraph(spec);
}

OpRange Whole(const Graph& graph) { return {0, static_cast<int>(graph.ops.size())}; }

int OpNamed(const Graph& graph, const std::string& name) {
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (graph.ops[op].name == name) return static_cast<int>(op);
  }
  ADD_FAILURE() << name;
  return -1;
}

TEST(CostTest, LinearCountsTwoOperationsForEachProduct) {
  const Graph graph = Gpt2Small();
  const Cost cost = OpCost(graph, OpNamed(graph, "h.0.mlp.fc"), 4);
  EXPECT_DOUBLE_EQ(cost.forward_flops, 2.0 * 4 * 1024 * 768 * 3072);
  EXPECT_DOUBLE_EQ(cost.backward_flops, 2 * cost.forward_flops);
}

// 1024 queries in 32 blocks of 32: block b multiplies with 32 (b + 1) keys.
TEST(CostTest, AttentionCountsTheBlocksThatAreExecuted) {
  const Graph graph = Gpt2Small();
  const double pairs = 32.0 * 32 * (32 * 33 / 2), scores = 12.0 * 1024 * 1025 / 2;
  const Cost cost = OpCost(graph, OpNamed(graph, "h.0.attn"), 3);
  EXPECT_GE(cost.forward_flops, 3 * 2 * 2 * pairs * 768);
  EXPECT_LE(cost.forward_flops, 3 * (2 * 2 * pairs * 768 + 20 * scores));
  EXPECT_GE(cost.backward_flops, 2.5 * 3 * 2 * 2 * pairs * 768);
}

// Kaplan et al. 2020, table 1: forward is 2 N + 2 n_layer n_ctx d_attn operations a token, N
// without embeddings; the causal half and the head are counted here beside it.
TEST(CostTest, WholeModelAgreesWithThePublishedEstimate) {
  const Graph graph = Gpt2Small();
  const double tokens = 1024;
  const double matrices = 12.0 * 12 * 768 * 768, head = 50257.0 * 768;
  const double estimate = tokens * (2 * matrices + 2 * head + 2.0 * 12 * 1024 * 768 / 2 * 2);
  const Cost cost = RangeCost(graph, Whole(graph), 1);
  EXPECT_NEAR(cost.forward_flops / estimate, 1.0, 0.03);
  EXPECT_NEAR(cost.backward_flops / cost.forward_flops, 2.0, 0.05);
}

TEST(CostTest, RangesAddUp) {
  const Graph graph = Gpt2Small();
  const int cut = graph.BlockPoints()[4];
  const Cost whole = RangeCost(graph, Whole(graph), 2);
  const Cost first = RangeCost(graph, {0, cut}, 2);
  const Cost second = RangeCost(graph, {cut, Whole(graph).end}, 2);
  EXPECT_DOUBLE_EQ(whole.forward_flops, first.forward_flops + second.forward_flops);
  EXPECT_DOUBLE_EQ(whole.backward_flops, first.backward_flops + second.backward_flops);
  EXPECT_DOUBLE_EQ(whole.bytes_moved, first.bytes_moved + second.bytes_moved);
  EXPECT_GT(whole.bytes_moved, 0);
}

TEST(CostTest, MemoryCountsEveryUseOfATiedTable) {
  const Graph tied = Gpt2Small(true), untied = Gpt2Small(false);
  const int64_t parameter_bytes = 4 * tied.ParameterCount(), table_bytes = 4 * 50257 * 768;
  const StageMemory memory = MemoryOf(tied, Whole(tied), 1, 1);
  EXPECT_EQ(memory.weights, parameter_bytes);
  EXPECT_EQ(memory.optimizer, 2 * parameter_bytes);
  EXPECT_EQ(memory.gradients, parameter_bytes + table_bytes);
  EXPECT_EQ(MemoryOf(untied, Whole(untied), 1, 1).weights, parameter_bytes + table_bytes);
  EXPECT_EQ(MemoryOf(untied, Whole(untied), 1, 1).gradients, memory.gradients);

  const int cut = tied.BlockPoints()[5];
  EXPECT_EQ(
      MemoryOf(tied, {0, cut}, 1, 1).weights + MemoryOf(tied, {cut, Whole(tied).end}, 1, 1).weights,
      parameter_bytes + table_bytes);
}

TEST(CostTest, ActivationsGrowWithSlotsAndScratchDoesNot) {
  const Graph graph = Gpt2Small();
  const StageMemory one = MemoryOf(graph, Whole(graph), 2, 1),
                    four = MemoryOf(graph, Whole(graph), 2, 4);
  EXPECT_EQ(four.activations, 4 * one.activations);
  EXPECT_EQ(four.scratch, one.scratch);
  EXPECT_EQ(four.total(), one.total() + 3 * one.activations);
}

TEST(CostTest, BoundaryIsOneActivation) {
  const Graph graph = Gpt2Small();
  EXPECT_EQ(BoundaryBytes(graph, graph.BlockPoints()[0], 3), 3 * 1024 * 768 * 4);
}

TEST(CostTest, ABoundaryOfSeveralEdgesIsTheirSum) {
  const Graph graph = Gpt2Small();  // after qkv: the block's input and 3 * 768 columns
  EXPECT_EQ(BoundaryBytes(graph, 3, 3), 3 * 1024 * (1 + 3) * 768 * 4);
}

// Korthikanti et al. 2022, section 4: with recomputation a layer keeps its input only.
TEST(CostTest, RecomputationKeepsOneActivationForEachLayer) {
  const Graph graph = Gpt2Small();
  const OpRange layers{graph.BlockPoints()[2], graph.BlockPoints()[8]};
  const StageMemory memory = MemoryOf(graph, layers, 2, 1, /*recompute=*/true);
  EXPECT_EQ(memory.activations, int64_t{7} * 2 * 1024 * 768 * 4);
  EXPECT_LT(memory.total(), MemoryOf(graph, layers, 2, 1).total());
}

// What a layer of GPT-2 keeps: its input, both norms, q | k | v, attention, the sum behind it, both
// sides of GELU; in fp32 two statistics of a row for each norm and one for each head.
TEST(CostTest, ActivationsOfBfloat16TakeHalfAndTheirStatisticsDoNot) {
  const Graph graph = Gpt2Small();
  const OpRange layers{graph.BlockPoints()[2], graph.BlockPoints()[8]};
  const int64_t rows = 3 * 1024, values = (6 * (1 + 1 + 3 + 1 + 1 + 1 + 4 + 4) + 1) * 768;
  const int64_t statistics = 6 * (2 + 2 + 12);
  EXPECT_EQ(MemoryOf(graph, layers, 3, 2).activations, 2 * rows * 4 * (values + statistics));
  EXPECT_EQ(MemoryOf(graph, layers, 3, 2, false, Precision::kBFloat16).activations,
            2 * rows * (2 * values + 4 * statistics));
}

TEST(CostTest, LogitsOfBfloat16TakeTheMemoryOfAVocabularyOf64More) {
  Graph graph = Gpt2Small(), padded = graph;
  padded.vocab = 50304;
  padded.edges[padded.ops.back().inputs[0]].width = 50304;
  const auto activations = [](const Graph& of, Precision precision) {
    return MemoryOf(of, Whole(of), 3, 2, false, precision).activations;
  };
  EXPECT_EQ(activations(graph, Precision::kBFloat16), activations(padded, Precision::kBFloat16));
  EXPECT_EQ(activations(padded, Precision::kFloat32) - activations(graph, Precision::kFloat32),
            int64_t{2} * 3 * 1024 * 47 * 4);
}

TEST(CostTest, Bfloat16KeepsItsStateInFp32AndWorksOnACopyOfTheWeights) {
  const Graph graph = Gpt2Small();
  const StageMemory fp32 = MemoryOf(graph, Whole(graph), 1, 1);
  const StageMemory bf16 = MemoryOf(graph, Whole(graph), 1, 1, false, Precision::kBFloat16);
  EXPECT_EQ(fp32.working_weights, 0);
  EXPECT_EQ(bf16.working_weights, 2 * graph.ParameterCount());
  EXPECT_EQ(bf16.weights, fp32.weights);
  EXPECT_EQ(bf16.optimizer, fp32.optimizer);
  EXPECT_EQ(bf16.gradients, fp32.gradients);
  EXPECT_GE(bf16.scratch, fp32.scratch / 2);
  EXPECT_LT(bf16.scratch, fp32.scratch);
  EXPECT_EQ(bf16.total(), bf16.weights + bf16.working_weights + bf16.gradients + bf16.optimizer +
                              bf16.activations + bf16.scratch + bf16.constants);
}

TEST(CostTest, TokenIdsAndTablesOfRotationsDoNotDependOnThePrecision) {
  ModelSpec spec;
  spec.family = "llama";
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.context = 32;
  spec.vocab = 100;
  const Graph graph = *BuildGraph(spec);
  const OpRange first{0, graph.CutPoints()[0]};  // the embedding alone
  EXPECT_EQ(MemoryOf(graph, first, 1, 3).activations, 3 * 32 * (64 * 4 + 4));
  EXPECT_EQ(MemoryOf(graph, first, 1, 3, false, Precision::kBFloat16).activations,
            3 * 32 * (64 * 2 + 4));
  EXPECT_GT(MemoryOf(graph, Whole(graph), 1, 1).constants, 0);
  EXPECT_EQ(MemoryOf(graph, Whole(graph), 1, 1, false, Precision::kBFloat16).constants,
            MemoryOf(graph, Whole(graph), 1, 1).constants);
}

// Forward reads input and weights and writes the output; backward reads input, weights and the
// output's gradient, writes the input's, and adds into the fp32 accumulators.
TEST(CostTest, Bfloat16MovesHalfTheBytesButForAccumulators) {
  const Graph graph = Gpt2Small();
  const int op = OpNamed(graph, "h.0.mlp.fc");
  const double rows = 4 * 1024, in = rows * 768, out = rows * 3072, weights = 768 * 3072 + 3072;
  EXPECT_DOUBLE_EQ(OpCost(graph, op, 4).bytes_moved, 4 * (3 * in + 2 * out + 4 * weights));
  EXPECT_DOUBLE_EQ(OpCost(graph, op, 4, Precision::kBFloat16).bytes_moved,
                   2 * (3 * in + 2 * out + 2 * weights) + 4 * 2 * weights);
  EXPECT_DOUBLE_EQ(OpCost(graph, op, 4, Precision::kBFloat16).forward_flops,
                   OpCost(graph, op, 4).forward_flops);
}

TEST(CostTest, HugeNumbersSaturate) {
  const Graph graph = Gpt2Small();
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const int slots = std::numeric_limits<int>::max();
  EXPECT_GE(MemoryOf(graph, Whole(graph), huge, slots).total(), kBytesMax);
  EXPECT_EQ(MemoryOf(graph, Whole(graph), kRowsMax / 1024, slots).activations, kBytesMax);
  EXPECT_EQ(BoundaryBytes(graph, graph.BlockPoints()[0], huge), kBytesMax);
}

}  // namespace
}  // namespace longhaul::model
