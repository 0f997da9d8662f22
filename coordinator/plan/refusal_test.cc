// What the planner refuses, and with which words.
#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Refusal, NoNodes) {
  EXPECT_THAT(RefusalOf(RequestOf(0)),
              AllOf(HasSubstr("no node is available"), HasSubstr("longhauld worker")));
}

TEST(Refusal, MoreStagesThanTheModelCanBeCutInto) {
  PlanRequest request = RequestOf(50);  // 4 layers of 10 operators, 4 others, one of them the loss
  request.spec.stages = 44;
  EXPECT_THAT(RefusalOf(request),
              AllOf(HasSubstr("cut into at most 43 stages"), HasSubstr("44 were asked for")));
}

TEST(Refusal, MoreStagesThanNodes) {
  PlanRequest request = RequestOf(2);
  request.spec.stages = 4;
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("pipeline.stages is 4 but 2 nodes are available"),
                                        HasSubstr("start 2 more")));
}

TEST(Refusal, TheRequestsStagesCountBeforeTheSpecs) {
  PlanRequest request = RequestOf(2);
  request.spec.stages = 4;
  request.stages = 2;
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->stages.size(), 2u);
}

TEST(Refusal, MemoryShowsEveryStageAndTheRemedy) {
  PlanRequest request = RequestOf(2);
  request.spec.stages = 2;
  request.spec.recompute = run::Recompute::kNever;
  request.spec.train.micro_batch = 8;  // activations are most of the memory
  for (NodeProfile& node : request.nodes) node.memory_bytes = 1 << 20;
  EXPECT_THAT(
      RefusalOf(request),
      AllOf(HasSubstr("stage 0 (layers 0-"), HasSubstr("stage 1 (layers "),
            HasSubstr("-3+head) needs "), HasSubstr("has 1 MiB, too little"), HasSubstr("most: "),
            HasSubstr("smaller train.micro_batch (now 8)"), HasSubstr("What helps: ")));
}

TEST(Refusal, AFixedNumberOfStagesThatIsTooSmallIsToldOfMoreStages) {
  PlanRequest request = RequestOf(4);
  request.spec.stages = 1;
  request.spec.recompute = run::Recompute::kNever;  // else one stage would fit that way
  const int64_t whole = MakePlan(request)->stages[0].memory.total();
  for (NodeProfile& node : request.nodes) node.memory_bytes = whole - 1;
  EXPECT_THAT(RefusalOf(request), HasSubstr("more stages (pipeline.stages up to 4)"));
  request.spec.stages = 0;
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->reasons[0], HasSubstr("Of 1 stage some would not fit"));
}

TEST(Refusal, NodesWithoutUsableSpeedAreLeftOut) {
  PlanRequest request = RequestOf(3);
  request.nodes[0].flops_per_second = std::numeric_limits<double>::quiet_NaN();
  request.nodes[2].bytes_per_second = 0;
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NodesOf(*plan), ElementsAre("n1"));
  request.nodes[1].threads = 0;
  EXPECT_THAT(RefusalOf(request), HasSubstr("flops_per_second is nan"));
}

TEST(Refusal, MoreDeviceGroupsThanARunMayHave) {
  PlanRequest request = RequestOf(2);
  request.stages = 1025;
  EXPECT_THAT(RefusalOf(request), HasSubstr("ask for 1025 nodes, more than the 1024"));
  request.stages = 17;
  request.spec.replicas = {64};
  EXPECT_THAT(RefusalOf(request), HasSubstr("ask for 1088 nodes, more than the 1024"));
  request.stages = 16;
  EXPECT_THAT(RefusalOf(request), HasSubstr("pipeline.stages is 16 but 2 nodes are available"));
}

TEST(Refusal, RequestsThatMakeNoSense) {
  PlanRequest request = RequestOf(2);
  request.nodes[1].name = "n0";
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = RequestOf(2);
  request.spec.train.micro_batch = 0;
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = RequestOf(2);
  request.spec.model.heads = 3;
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::coordinator
