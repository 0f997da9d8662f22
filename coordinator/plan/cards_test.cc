// Plans for clusters of processors and cards.
#include <algorithm>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "coordinator/plan/card_needs.h"
#include "coordinator/plan/codecs.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/cost.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

PlanRequest Mixed(std::vector<NodeProfile> nodes, int stages = 0) {
  PlanRequest request = SmallRequest(std::move(nodes), {}, stages);
  request.spec.any_numeric_class = true;
  return request;
}

TEST(Cards, ComputeAtTheRateOfTheRunsPrecision) {
  PlanRequest request = SmallRequest({SomeCard("card", "east", 100)});
  request.nodes[0].bytes_per_second = 1e30;  // arithmetic alone
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  const model::Cost cost = model::RangeCost(graph, {0, static_cast<int>(graph.ops.size())}, 4);
  const double flops = 8 * (cost.forward_flops + cost.backward_flops);
  EXPECT_NEAR(PlanOf(request).step_seconds, flops / 5e12, 1e-9 * flops / 5e12);
  request.spec.train.precision = model::Precision::kFloat32;
  EXPECT_NEAR(PlanOf(request).step_seconds, flops / 0.5e12, 1e-9 * flops / 0.5e12);
}

// Traffic alone: every operator's, and for the optimizer 8 passes over fp32 weights and one over
// the working copy.
TEST(Cards, MoveTheBytesOfTheRunsPrecision) {
  PlanRequest request = SmallRequest({SomeCard("card", "east", 1)});
  request.nodes[0].flops_per_second = request.nodes[0].bfloat16_flops_per_second = 1e30;
  request.nodes[0].bytes_per_second = 1e9;
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  const model::OpRange all{0, static_cast<int>(graph.ops.size())};
  const double weights = static_cast<double>(graph.ParameterCount());
  const double fp32 = (8 * model::RangeCost(graph, all, 4).bytes_moved + 8 * 4 * weights) / 1e9;
  const double bf16 =
      (8 * model::RangeCost(graph, all, 4, model::Precision::kBFloat16).bytes_moved +
       (8 * 4 + 2) * weights) /
      1e9;
  EXPECT_NEAR(PlanOf(request).step_seconds, bf16, 1e-9 * bf16);
  request.spec.train.precision = model::Precision::kFloat32;
  EXPECT_NEAR(PlanOf(request).step_seconds, fp32, 1e-9 * fp32);
}

TEST(Cards, StagesNeedTheMemoryOfWhatTheirDeviceComputesIn) {
  PlanRequest request = Mixed({SomeCard("card", "east", 2), SomeNode("cpu", "east")}, 2);
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  const Plan plan = PlanOf(request);
  ASSERT_THAT(NodesOf(plan), UnorderedElementsAre("card", "cpu"));
  for (const StagePlacement& stage : plan.stages) {
    const auto precision =
        stage.node == "card" ? model::Precision::kBFloat16 : model::Precision::kFloat32;
    EXPECT_EQ(stage.memory, model::MemoryOf(graph, stage.range, 4, stage.slots, false, precision));
  }
}

// Of 4 sequences of 64 tokens and 4 heads of 32 columns: fp32 rows for q's gradient, a float for
// each query, and scores in bf16 while they are few.
TEST(Cards, AttentionTakesWhatItsBackwardAddsInto) {
  const run::RunSpec spec = SmallRun();
  const model::Graph graph = *model::BuildGraph(spec.model);
  const double sums = 4 * 64 * (128 + 4) * 4;
  EXPECT_EQ(AttentionBytes(graph, 4), sums + 2 * 4 * 4 * 64 * 64);
  // The sums of 6144 sequences take 198 MiB and their scores 192; those of 65536 are too many.
  EXPECT_EQ(AttentionBytes(graph, 6144), 256 << 20);
  EXPECT_EQ(AttentionBytes(graph, 65536), 65536 / 4 * sums);
}

// 8 tensors of 4 x 64 x 128 floats.
TEST(Cards, ThePlansTextHasWhatTheyKeepBesideTheirStages) {
  PlanRequest request = SmallRequest({SomeCard("a", "east", 2), SomeCard("b", "east", 2)}, {}, 2);
  request.spec.model.tied = false;
  request.spec.train.precision = model::Precision::kFloat32;
  EXPECT_THAT(PlanToText(PlanOf(request), request), HasSubstr(" 1 MiB\n"));
  PlanRequest other = request;
  other.spec.model.layers = 2;
  EXPECT_THAT(PlanToText(PlanOf(request), other), ::testing::Not(HasSubstr(" 1 MiB\n")));
}

// What is too large in fp32 fits in bf16.
TEST(Cards, Bfloat16FitsWhereFloat32DoesNot) {
  PlanRequest request = SmallRequest({SomeCard("card", "east", 2)});
  request.spec.recompute = run::Recompute::kNever;
  const auto needed = [&] { return PlanOf(request).stages[0].memory.total(); };
  const int64_t bf16 = needed();
  request.spec.train.precision = model::Precision::kFloat32;
  ASSERT_GT(needed(), bf16);
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  request.nodes[0].memory_bytes = bf16 + static_cast<int64_t>(AttentionBytes(graph, 4));
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kFailedPrecondition);
  request.spec.train.precision = model::Precision::kBFloat16;
  EXPECT_TRUE(MakePlan(request).ok());
  --request.nodes[0].memory_bytes;
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Cards, AProcessorThatWouldSlowTheCardIsLeftOutWithNumbers) {
  const Plan plan =
      PlanOf(Mixed({SomeCard("card", "east", 100), SomeNode("a", "east"), SomeNode("b", "east")}));
  EXPECT_THAT(NodesOf(plan), ElementsAre("card"));
  EXPECT_THAT(plan.numeric_classes, ElementsAre("cuda"));
  EXPECT_THAT(plan.reasons,
              Contains(AllOf(HasSubstr(" not used: the best plan tried with it, of 2 stages, would "
                                       "take "),
                             HasSubstr(" more)"))));
}

TEST(Cards, ANodeThatNoPlanWasTriedWithIsComparedBySpeed) {
  const Plan plan = PlanOf(Mixed(
      {SomeCard("card", "east", 100), SomeCard("card2", "east", 100), SomeNode("cpu", "east")}, 2));
  EXPECT_THAT(NodesOf(plan), UnorderedElementsAre("card", "card2"));
  EXPECT_THAT(plan.reasons, Contains("Node cpu is not used: 50 GFLOP/s, where the slowest that is "
                                     "used has 5 TFLOP/s."));
}

// The slowest stage at best of two on nodes of these rates, by trying every cut; only arithmetic
// costs anything.
double BestBalance(const model::Graph& graph, double first_rate, double last_rate) {
  const auto flops = [&](model::OpRange range) {
    const model::Cost cost = model::RangeCost(graph, range, 4);
    return cost.forward_flops + cost.backward_flops;
  };
  double best = 1e30;
  for (const int cut : graph.CutPoints()) {
    const double first = flops({0, cut}) / first_rate;
    const double last = flops({cut, static_cast<int>(graph.ops.size())}) / last_rate;
    best = std::min(best, std::max(first, last));
  }
  return best;
}

// Cuts inside blocks, where more has to be encoded and sent, are only taken where the step gets
// clearly faster.
TEST(Cards, CutsBalanceUnequalRates) {
  for (const double times : {1.5, 3.0, 7.0, 20.0}) {
    PlanRequest request = Mixed({SomeCard("card", "east", times), SomeNode("cpu", "east")}, 2);
    request.spec.model.layers = 8;
    request.spec.train.global_batch = 200;
    for (NodeProfile& node : request.nodes) node.bytes_per_second = 1e30;
    const model::Graph graph = *model::BuildGraph(request.spec.model);
    const Plan plan = PlanOf(request);
    double slowest = 0;
    for (const StagePlacement& stage : plan.stages) {
      slowest = std::max(slowest, stage.forward_seconds + stage.backward_seconds);
    }
    const bool card_first = plan.stages[0].node == "card";
    const double best =
        BestBalance(graph, 50e9 * (card_first ? times : 1), 50e9 * (card_first ? 1 : times));
    EXPECT_GE(slowest, (1 - 1e-9) * best) << times;
    EXPECT_LE(slowest, 1.03 * best) << times;
  }
}

TEST(Cards, ThePlansTableSaysWhatEachDeviceComputesIn) {
  PlanRequest request = Mixed({SomeCard("card", "east", 2), SomeNode("cpu", "east")}, 2);
  EXPECT_THAT(PlanToText(PlanOf(request), request),
              AllOf(HasSubstr("SITE  DEVICE     LAYERS"), HasSubstr("card  east  cuda bf16"),
                    HasSubstr("cpu   east  cpu fp32")));
  request.nodes.erase(request.nodes.begin());
  request.stages = 1;
  EXPECT_THAT(PlanToText(PlanOf(request), request), ::testing::Not(HasSubstr("DEVICE")));
}

// Frames are encoded where the memory is fast; what has no kernel for cards is left to a core.
TEST(Cards, EncodeAtTheirMemorysRate) {
  const Links links({});
  const Link between_cards = links.Between(SomeCard("a", "e", 100), SomeCard("b", "e", 50));
  const Link to_processor = links.Between(SomeCard("a", "e", 100), SomeNode("b", "e"));
  const compression::Codec& int8 = **compression::FindCodec("int8");
  const compression::Codec& zstd = **compression::FindCodec("zstd");
  const double bytes = 1e6 * (4 + int8.ExpectedBytesPerElement());
  EXPECT_DOUBLE_EQ(FrameSecondsOf(int8, 1e6, between_cards).encode, bytes / 1e12);
  EXPECT_DOUBLE_EQ(FrameSecondsOf(int8, 1e6, between_cards).decode, bytes / 0.5e12);
  EXPECT_DOUBLE_EQ(FrameSecondsOf(int8, 1e6, to_processor).encode, bytes / 1e12);
  EXPECT_DOUBLE_EQ(FrameSecondsOf(int8, 1e6, to_processor).decode,
                   1e6 * int8.ExpectedDecodeSecondsPerElement());
  EXPECT_DOUBLE_EQ(FrameSecondsOf(zstd, 1e6, between_cards).encode,
                   1e6 * zstd.ExpectedEncodeSecondsPerElement());
}

TEST(Cards, WorkersThatShareACardSlowEachOther) {
  PlanRequest request = SmallRequest({SomeCard("a", "east", 2), SomeCard("b", "east", 2)}, {}, 2);
  for (NodeProfile& node : request.nodes) {
    node.host = "machine";
    node.host_cores = 1;  // of its processor: cards take nothing of it
  }
  const double apart = PlanOf(request).step_seconds;
  for (NodeProfile& node : request.nodes) node.device_uuid = "GPU-7";
  const Plan plan = PlanOf(request);
  EXPECT_GT(plan.step_seconds, 1.3 * apart);
  EXPECT_THAT(plan.reasons, Contains(AllOf(HasSubstr(" share the card GPU-7: while all work, each"),
                                           HasSubstr("50 % of its speed"))));
  request.nodes[1].device_uuid = "GPU-8";
  EXPECT_DOUBLE_EQ(PlanOf(request).step_seconds, apart);
}

TEST(Cards, ACardWithoutARateInBfloat16IsLeftOutOfSuchRuns) {
  PlanRequest request = SmallRequest({SomeCard("a", "east", 2), SomeCard("b", "east", 2)});
  request.nodes[0].bfloat16_flops_per_second = 0;
  EXPECT_THAT(NodesOf(PlanOf(request)), ElementsAre("b"));
  EXPECT_THAT(PlanOf(request).reasons,
              Contains(HasSubstr("Node a is left out: it reports no usable speed "
                                 "(bfloat16_flops_per_second is 0)")));
  request.spec.train.precision = model::Precision::kFloat32;
  EXPECT_THAT(NodesOf(PlanOf(request)), Contains("a"));
}

}  // namespace
}  // namespace longhaul::coordinator
