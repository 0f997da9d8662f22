// Which numeric class a run gets, and runs that mix several.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Three processors and a card that is so many times as fast as each.
PlanRequest WithCard(double times) {
  PlanRequest request = RequestOf(3);
  request.nodes.push_back(SomeCard("card", "east", times));
  return request;
}

TEST(NumericClass, OfEqualNodesTheMostAreTakenAndTheOthersAreNamed) {
  PlanRequest request = RequestOf(4);
  request.nodes[1].numeric_class = "avx512";
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->numeric_classes, ElementsAre("avx2"));
  EXPECT_THAT(NodesOf(*plan), Not(Contains("n1")));
  EXPECT_THAT(plan->reasons,
              Contains(AllOf(HasSubstr("n1"), HasSubstr("'avx512'"), HasSubstr("'avx2'"))));
}

TEST(NumericClass, MoreStagesThanTheClassHasNodesIsRefusedWithTheClasses) {
  PlanRequest request = RequestOf(4);
  request.nodes[1].numeric_class = "avx512";
  request.spec.stages = 4;
  EXPECT_THAT(RefusalOf(request),
              AllOf(HasSubstr("pipeline.stages is 4, but no numeric class has so many nodes"),
                    HasSubstr("3 of 'avx2' (n0, n2, n3)"), HasSubstr("1 of 'avx512' (n1)"),
                    HasSubstr("machines of one kind, with one build")));
}

TEST(NumericClass, ARunKeepsItsClass) {
  PlanRequest request = RequestOf(3);
  request.nodes[1].numeric_class = "avx512";
  request.numeric_class = "avx512";
  const absl::StatusOr<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NodesOf(*plan), ElementsAre("n1"));
  // Its file was stored when it was started: nothing advises to change that.
  EXPECT_THAT(plan->reasons, Contains(HasSubstr("'avx2' is not the run's 'avx512'")));
  EXPECT_THAT(plan->reasons, Each(Not(HasSubstr("pipeline.numeric_class"))));
  request.numeric_class = "sve";
  EXPECT_THAT(RefusalOf(request),
              AllOf(HasSubstr("the run was begun with numeric class 'sve'"), HasSubstr("0 of 3"),
                    HasSubstr("`longhaul checkpoint export first --to DIR`"),
                    HasSubstr("`model: {from: DIR}`"), Not(HasSubstr("pipeline.numeric_class"))));
}

TEST(NumericClass, TheFastestPlanDecides) {
  const Plan fast = PlanOf(WithCard(100));
  EXPECT_THAT(NodesOf(fast), ElementsAre("card"));
  EXPECT_THAT(fast.numeric_classes, ElementsAre("cuda"));
  EXPECT_THAT(
      fast.reasons,
      Contains(AllOf(HasSubstr("Nodes n0, n1 and n2 are left out: numeric class 'avx2'"),
                     HasSubstr("with them alone a step would take"), HasSubstr("times as long"),
                     HasSubstr("`pipeline.numeric_class: any`"))));
  const Plan slow = PlanOf(WithCard(0.5));
  EXPECT_THAT(slow.numeric_classes, ElementsAre("avx2"));
  EXPECT_THAT(slow.reasons, Contains(HasSubstr("Node card is left out: numeric class 'cuda'")));
  EXPECT_THAT(slow.reasons, Each(Not(HasSubstr("The bits depend"))));
}

TEST(NumericClass, AClassThatDoesNotFitIsNotTaken) {
  PlanRequest request = WithCard(100);
  request.nodes.back().memory_bytes = 1 << 20;
  const Plan plan = PlanOf(request);
  EXPECT_THAT(plan.numeric_classes, ElementsAre("avx2"));
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("they alone would not do (the job does not fit")));
  for (NodeProfile& node : request.nodes) node.memory_bytes = 1 << 20;
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("with nodes of numeric class 'avx2'"),
                                        HasSubstr("with `pipeline.numeric_class: any` all could")));
  request.spec.replicas = {2};
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("with nodes of numeric class 'avx2'"),
                                        Not(HasSubstr("`pipeline.numeric_class: any`"))));
}

TEST(NumericClass, ManyClassesAreNotAllPlanned) {
  PlanRequest request = RequestOf(6);
  for (int i = 0; i < 6; ++i) {
    request.nodes[i].numeric_class = absl::StrCat("class", i);
    request.nodes[i].flops_per_second *= 1 + i;
  }
  const Plan plan = PlanOf(request);
  EXPECT_THAT(NodesOf(plan), ElementsAre("n5"));
  EXPECT_THAT(plan.reasons, Contains(AllOf(HasSubstr("'class2'"), HasSubstr("with them alone"))));
  EXPECT_THAT(plan.reasons, Contains(AllOf(HasSubstr("'class1'"), Not(HasSubstr("alone")))));
}

// Five fast cards of different kinds are no reason not to look at the processors.
TEST(NumericClass, AClassWithEnoughNodesIsTriedHoweverFastOthersAre) {
  PlanRequest request = RequestOf(6);
  for (int i = 0; i < 5; ++i) {
    NodeProfile card = SomeCard(absl::StrCat("card", i), "east", 100 + i);
    card.numeric_class = absl::StrCat("cuda", i);
    card.memory_bytes = 1 << 20;
    request.nodes.push_back(card);
  }
  EXPECT_THAT(PlanOf(request).numeric_classes, ElementsAre("avx2"));  // the cards hold too little
  for (NodeProfile& node : request.nodes) node.memory_bytes = int64_t{4} << 30;
  EXPECT_THAT(PlanOf(request).numeric_classes, ElementsAre("cuda4"));
  request.spec.stages = 6;
  const Plan plan = PlanOf(request);
  EXPECT_THAT(plan.numeric_classes, ElementsAre("avx2"));
  EXPECT_EQ(plan.stages.size(), 6u);
}

TEST(NumericClass, TheEmptyClassIsAClass) {
  PlanRequest request = RequestOf(2);
  request.nodes[0].numeric_class = "";
  request.nodes[0].flops_per_second *= 9;
  const Plan plan = PlanOf(request);
  EXPECT_THAT(NodesOf(plan), ElementsAre("n0"));
  EXPECT_THAT(plan.numeric_classes, ElementsAre(""));
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("Node n1 is left out: numeric class 'avx2'")));
}

TEST(NumericClass, AnyMixesThemAndSaysWhatThatMeans) {
  PlanRequest request = WithCard(2);
  request.spec.any_numeric_class = true;
  const Plan plan = PlanOf(request);
  EXPECT_THAT(plan.numeric_classes, ElementsAre("avx2", "cuda"));
  EXPECT_EQ(plan.reasons[0],
            "The bits depend on where each stage runs: nodes of 2 numeric classes take part "
            "('avx2' and 'cuda'), as `pipeline.numeric_class: any` allows.");
  request.spec.any_numeric_class = false;
  EXPECT_LT(plan.step_seconds, PlanOf(request).step_seconds);
  // With as many stages as only all of them together are.
  request.stages = 4;
  EXPECT_THAT(RefusalOf(request), HasSubstr("`pipeline.numeric_class: any`"));
  request.spec.any_numeric_class = true;
  EXPECT_EQ(PlanOf(request).stages.size(), 4u);
}

// A processor that can do next to nothing for the card is not worth the exactness.
TEST(NumericClass, AnyMixesOnlyWhereThatPays) {
  PlanRequest request = SmallRequest({SomeCard("card", "east", 20), SomeNode("cpu", "east")});
  request.spec.any_numeric_class = true;
  request.spec.train.global_batch = 4000;
  for (const double times : {20.0, 25.0, 30.0, 35.0, 40.0, 50.0, 60.0}) {
    request.nodes[0] = SomeCard("card", "east", times);
    const Plan plan = PlanOf(request);
    request.spec.any_numeric_class = false;
    const double alone = PlanOf(request).step_seconds;
    request.spec.any_numeric_class = true;
    if (plan.numeric_classes.size() > 1) {
      EXPECT_LT(plan.step_seconds, 0.99 * alone) << times;
    } else {
      EXPECT_EQ(plan.step_seconds, alone) << times;
    }
  }
}

TEST(NumericClass, AnyOfOneClassMixesNothing) {
  PlanRequest request = RequestOf(2);
  const Plan one = PlanOf(request);
  request.spec.any_numeric_class = true;
  EXPECT_EQ(PlanToJson(PlanOf(request)), PlanToJson(one));
}

TEST(NumericClass, ARunOfOneClassKeepsItEvenWhereOthersAreFaster) {
  PlanRequest request = WithCard(100);
  request.numeric_class = "avx2";
  EXPECT_THAT(PlanOf(request).numeric_classes, ElementsAre("avx2"));
}

TEST(NumericClass, ReplicasOfAStageAreOfOneClassEvenInMixedRuns) {
  PlanRequest request = WithCard(1.5);
  request.nodes.push_back(SomeCard("card2", "east", 1.5));
  request.spec.any_numeric_class = true;
  request.spec.replicas = {2};
  request.stages = 2;
  const Plan plan = PlanOf(request);
  ASSERT_EQ(plan.stages.size(), 4u);
  for (const size_t leader : {0, 2}) {
    EXPECT_EQ(plan.stages[leader].node.substr(0, 1), plan.stages[leader + 1].node.substr(0, 1));
  }
  request.spec.replicas = {3, 1};
  request.spec.stages = 2;
  request.nodes.erase(request.nodes.begin());
  EXPECT_THAT(RefusalOf(request), HasSubstr("and of one numeric class: site east has 2 nodes"));
}

}  // namespace
}  // namespace longhaul::coordinator
