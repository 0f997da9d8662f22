// Requests as large as they may be in practice: a plan must come while a person waits for it. Their
// tests need no clock: what grows too fast runs into the time limit of the test.
#include "absl/strings/str_cat.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

PlanRequest LargeRequest(int nodes, int sites, int64_t layers, int64_t global_batch) {
  PlanRequest request;
  request.spec = SmallRun();
  request.spec.model.layers = layers;
  request.spec.train.global_batch = global_batch;
  request.spec.train.micro_batch = 1;
  for (int i = 0; i < nodes; ++i) {
    request.nodes.push_back(SomeNode(absl::StrCat("n", i), absl::StrCat("s", i % sites)));
    request.nodes.back().memory_bytes = int64_t{64} << 30;
  }
  return request;
}

TEST(LargePlan, AThousandLayersAndAMillionMicroBatches) {
  const absl::StatusOr<Plan> plan = MakePlan(LargeRequest(4, 2, 1024, 1048576));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->stages.size(), 4u);
}

TEST(LargePlan, FortyNodesInFortySites) {
  const absl::StatusOr<Plan> plan = MakePlan(LargeRequest(40, 40, 96, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->reasons, Contains(HasSubstr("Not every")));
}

TEST(LargePlan, AHundredNodesInAHundredSites) {
  const absl::StatusOr<Plan> plan = MakePlan(LargeRequest(100, 100, 128, 512));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->reasons, Contains(HasSubstr("Not every")));
}

TEST(LargePlan, AHundredStagesOfAThousandLayers) {
  for (const int64_t global_batch : {int64_t{100}, int64_t{1048576}}) {
    PlanRequest request = LargeRequest(100, 10, 1024, global_batch);
    for (const int stages : {0, 100}) {
      request.stages = stages;
      const absl::StatusOr<Plan> plan = MakePlan(request);
      ASSERT_TRUE(plan.ok()) << plan.status();
    }
  }
}

TEST(LargePlan, ARefusalOfAHundredNodes) {
  PlanRequest request = LargeRequest(100, 100, 1024, 1048576);
  for (NodeProfile& node : request.nodes) node.memory_bytes = 1 << 20;
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace longhaul::coordinator
