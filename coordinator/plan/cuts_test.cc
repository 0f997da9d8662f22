#include "coordinator/plan/cuts.h"

#include <algorithm>

#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/cost.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Cuts, BytesAreThoseOfTheBoundary) {
  const model::Graph graph = *model::BuildGraph(SmallRun().model);
  const std::vector<double> bytes = CutBytes(graph, 3);
  ASSERT_EQ(bytes.size(), graph.ops.size() + 1);
  for (const int cut : graph.CutPoints()) {
    EXPECT_EQ(bytes[cut], static_cast<double>(model::BoundaryBytes(graph, cut, 3))) << cut;
  }
}

// A block has ten operators behind the embedding; after its two sums only the residual crosses.
TEST(Cuts, TheCheapestAreWhereOnlyTheResidualCrosses) {
  const model::Graph graph = *model::BuildGraph(SmallRun().model);
  EXPECT_THAT(CheapestCuts(graph, CutBytes(graph, 4)),
              ElementsAre(1, 6, 11, 16, 21, 26, 31, 36, 41));
}

TEST(Cuts, OfAChainBlocksAreTheCuts) {
  model::Graph graph = *model::BuildGraph(SmallRun().model);
  const std::vector<double> even(graph.ops.size() + 1, 64);
  EXPECT_EQ(CheapestCuts(graph, even), graph.BlockPoints());
}

TEST(Cuts, MoreStagesThanLayersArePlanned) {
  PlanRequest request = SmallRequest({}, {}, 7);
  request.spec.model.layers = 1;
  for (int i = 0; i < 7; ++i) request.nodes.push_back(SomeNode("n" + std::to_string(i), "east"));
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->stages.size(), 7u);
}

// What the worker allocates is what the plan says, cut and recomputing as it says.
void ExpectMemoryIsTheModels(const PlanRequest& request, const Plan& plan) {
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  for (const StagePlacement& stage : plan.stages) {
    EXPECT_EQ(stage.memory, model::MemoryOf(graph, stage.range, request.spec.train.micro_batch,
                                            stage.slots, stage.recompute));
  }
}

TEST(Recomputation, IsChosenOnlyWhereMemoryIsShort) {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "east")}, {}, 2);
  const absl::StatusOr<Plan> roomy = MakePlan(request);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_THAT(roomy->reasons, Not(Contains(HasSubstr("again in backward"))));
  ExpectMemoryIsTheModels(request, *roomy);

  request.nodes[0].memory_bytes = request.nodes[1].memory_bytes =
      roomy->stages[0].memory.total() * 7 / 10;
  const absl::StatusOr<Plan> tight = MakePlan(request);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_TRUE(tight->stages[0].recompute);
  EXPECT_THAT(tight->reasons, Contains(HasSubstr("Stage 0 makes activations again in backward: ")));
  EXPECT_GT(tight->step_seconds, roomy->step_seconds);
  for (const StagePlacement& stage : tight->stages) {
    EXPECT_LE(stage.memory.total(), request.nodes[0].memory_bytes);
  }
  ExpectMemoryIsTheModels(request, *tight);

  request.spec.recompute = run::Recompute::kNever;
  EXPECT_THAT(std::string(MakePlan(request).status().message()),
              HasSubstr("pipeline.recompute: auto"));
}

TEST(Recomputation, AlwaysIsEveryStage) {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "east")}, {}, 2);
  request.spec.recompute = run::Recompute::kAlways;
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const StagePlacement& stage : plan->stages) EXPECT_TRUE(stage.recompute);
  EXPECT_THAT(plan->reasons, Contains(HasSubstr("as asked for: it needs")));
  ExpectMemoryIsTheModels(request, *plan);
}

}  // namespace
}  // namespace longhaul::coordinator
