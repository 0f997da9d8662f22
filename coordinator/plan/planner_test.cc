#include "coordinator/plan/planner.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/cost.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string SiteOf(const PlanRequest& request, const std::string& node) {
  for (const NodeProfile& profile : request.nodes) {
    if (profile.name == node) return profile.site;
  }
  return "";
}

int CrossingsOf(const PlanRequest& request, const std::vector<std::string>& nodes) {
  int crossings = 0;
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    if (SiteOf(request, nodes[i]) != SiteOf(request, nodes[i + 1])) ++crossings;
  }
  return crossings;
}

// The stages cover the model's operators once, in order, at cut points.
void ExpectCovers(const Plan& plan, const run::RunSpec& spec) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(spec.model);
  ASSERT_TRUE(graph.ok());
  const std::vector<int> cuts = graph->CutPoints();
  int next = 0;
  for (const StagePlacement& stage : plan.stages) {
    EXPECT_EQ(stage.range.begin, next);
    EXPECT_GT(stage.range.end, stage.range.begin);
    if (next != 0) {
      EXPECT_TRUE(std::find(cuts.begin(), cuts.end(), next) != cuts.end());
    }
    next = stage.range.end;
  }
  EXPECT_EQ(next, static_cast<int>(graph->ops.size()));
  EXPECT_EQ(plan.link_codecs.size() + 1, plan.stages.size());
}

TEST(MakePlan, PredictsOneStageAsArithmetic) {
  PlanRequest request = SmallRequest({SomeNode("a", "east")});
  request.nodes[0].bytes_per_second = 1e30;  // arithmetic alone
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  const model::Cost cost = model::RangeCost(graph, {0, static_cast<int>(graph.ops.size())}, 4);
  const Plan plan = PlanOf(request);
  ExpectCovers(plan, request.spec);
  EXPECT_NEAR(plan.step_seconds, 8 * (cost.forward_flops + cost.backward_flops) / 50e9,
              1e-9 * plan.step_seconds);
  EXPECT_EQ(plan.wan_links, 0);
  EXPECT_THAT(plan.numeric_classes, ElementsAre("avx2"));
}

// With one micro-batch and two stages nothing overlaps: forward, link, forward, backward, link,
// backward.
TEST(MakePlan, PredictsTwoStagesAndOneMicroBatchAsASum) {
  PlanRequest request =
      SmallRequest({SomeNode("a", "east"), SomeNode("b", "west")},
                   {{"east", "west", 0.030, 1e6}, {"west", "east", 0.040, 2e6}}, 2);
  request.spec.model.tied = false;
  request.spec.train.global_batch = 4;
  for (NodeProfile& node : request.nodes) node.bytes_per_second = 1e30;
  const model::Graph graph = *model::BuildGraph(request.spec.model);
  const model::Cost cost = model::RangeCost(graph, {0, static_cast<int>(graph.ops.size())}, 4);
  const double elements = 4 * 64 * 128;
  const compression::Codec& none = **compression::FindCodec("none");
  const double codec =
      elements * (none.ExpectedEncodeSecondsPerElement() + none.ExpectedDecodeSecondsPerElement());
  const Plan plan = PlanOf(request);
  ExpectCovers(plan, request.spec);
  const double expected = (cost.forward_flops + cost.backward_flops) / 50e9 + 2 * codec + 0.030 +
                          0.040 + elements * 4 / 1e6 + elements * 4 / 2e6;
  EXPECT_NEAR(plan.step_seconds, expected, 1e-9 * expected);
  EXPECT_EQ(plan.wan_links, 1);
}

TEST(MakePlan, AutoUsesEveryNodeOfALanWhenThereIsEnoughToDo) {
  PlanRequest request = SmallRequest({});
  for (const char* name : {"a", "b", "c", "d"}) {
    request.nodes.push_back(SomeNode(name, "east"));
  }
  const Plan plan = PlanOf(request);
  EXPECT_EQ(plan.stages.size(), 4u);
  ExpectCovers(plan, request.spec);
  for (size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(plan.stages[stage].slots, static_cast<int>(4 - stage));
  }
}

// Four one-thread workers on a host with two cores: the same work for the cores as with two, but
// less of it while the pipeline fills and drains.
TEST(MakePlan, AutoUsesMoreWorkersThanCoresSinceFinerStagesFillFaster) {
  PlanRequest request = SmallRequest({});
  for (const char* name : {"a", "b", "c", "d"}) {
    request.nodes.push_back(SomeNode(name, "east"));
    request.nodes.back().host = "laptop";
    request.nodes.back().host_cores = 2;
  }
  const auto seconds = [&](int stages) {
    request.stages = stages;
    return PlanOf(request).step_seconds;
  };
  const double one = seconds(1), two = seconds(2), four = seconds(4);
  EXPECT_GT(four, one / 2);
  EXPECT_LT(four, two);
  EXPECT_LT(two, one);
  request.stages = 0;
  const Plan plan = PlanOf(request);
  // Three stages are as even as four, since half layers can be cut off.
  EXPECT_GT(plan.stages.size(), 2u);
  EXPECT_THAT(plan.reasons, ::testing::Contains(HasSubstr(" threads on the 2 cores")));
}

TEST(MakePlan, WorkersThatCrowdOneHostLoseToAHostOfTheirOwn) {
  PlanRequest request = SmallRequest({}, {}, 2);
  for (const char* name : {"a", "b", "c"}) request.nodes.push_back(SomeNode(name, "east"));
  for (int node : {0, 1}) {
    request.nodes[node].host = "laptop";
    request.nodes[node].host_cores = 1;
  }
  EXPECT_THAT(NodesOf(PlanOf(request)), ::testing::Contains("c"));
}

TEST(MakePlan, AutoStaysOnOneSiteWhenTheLinkEatsTheGain) {
  PlanRequest request = SmallRequest({}, {{"east", "west", 0.5, 1e6}});
  for (const char* name : {"a", "c"}) request.nodes.push_back(SomeNode(name, "west"));
  for (const char* name : {"b", "d"}) request.nodes.push_back(SomeNode(name, "east"));
  const Plan plan = PlanOf(request);
  EXPECT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.wan_links, 0);
  request.links[0] = {"east", "west", 1e-4, 1e9};
  EXPECT_EQ(PlanOf(request).stages.size(), 4u);
}

TEST(MakePlan, CrossesNoMoreSitesThanTheBestOrderOfItsNodes) {
  PlanRequest request = SmallRequest({}, {}, 6);
  request.spec.model.layers = 6;
  const char* const sites[] = {"p", "q", "r", "p", "q", "r"};
  for (int i = 0; i < 6; ++i) request.nodes.push_back(SomeNode(absl::StrCat("n", i), sites[i]));
  const Plan plan = PlanOf(request);
  std::vector<std::string> nodes = NodesOf(plan);
  const int crossings = CrossingsOf(request, nodes);
  EXPECT_EQ(plan.wan_links, crossings);
  std::sort(nodes.begin(), nodes.end());
  int fewest = 6;
  do {
    fewest = std::min(fewest, CrossingsOf(request, nodes));
  } while (std::next_permutation(nodes.begin(), nodes.end()));
  EXPECT_EQ(crossings, fewest);
}

TEST(MakePlan, VisitsSitesAlongTheShortLinks) {
  // q lies between p and r.
  PlanRequest request =
      SmallRequest({}, {{"p", "q", 0.01, 1e9}, {"q", "r", 0.01, 1e9}, {"p", "r", 0.10, 1e9}}, 3);
  request.spec.model.tied = false;
  for (const char* name : {"p", "q", "r"}) {
    request.nodes.push_back(SomeNode(absl::StrCat("n", name), name));
  }
  EXPECT_EQ(NodesOf(PlanOf(request))[1], "nq");
}

TEST(MakePlan, TakesTheFasterNodes) {
  PlanRequest request = SmallRequest({}, {}, 2);
  const double rates[] = {20e9, 80e9, 40e9, 90e9};
  for (int i = 0; i < 4; ++i) {
    request.nodes.push_back(SomeNode(absl::StrCat("n", i), "east"));
    request.nodes.back().flops_per_second = rates[i];
  }
  EXPECT_THAT(NodesOf(PlanOf(request)), UnorderedElementsAre("n1", "n3"));
}

TEST(MakePlan, GivesTheFasterNodeMoreLayers) {
  PlanRequest request = SmallRequest({SomeNode("fast", "east"), SomeNode("slow", "east")}, {}, 2);
  request.nodes[0].flops_per_second *= 3;
  const Plan plan = PlanOf(request);
  for (const StagePlacement& stage : plan.stages) {
    const int ops = stage.range.end - stage.range.begin;
    const int all = plan.stages.back().range.end;
    if (stage.node == "fast") {
      EXPECT_GT(ops, all / 2);
    }
  }
}

TEST(MakePlan, MemoryMovesLayersToTheRoomierNode) {
  PlanRequest request = SmallRequest({SomeNode("roomy", "east"), SomeNode("tight", "east")}, {}, 2);
  request.nodes[1].memory_bytes = int64_t{16} << 20;
  const Plan plan = PlanOf(request);
  for (size_t stage = 0; stage < 2; ++stage) {
    if (plan.stages[stage].node != "tight") continue;
    EXPECT_LE(plan.stages[stage].memory.total(), request.nodes[1].memory_bytes);
  }
}

TEST(MakePlan, IsTheSameWhateverTheOrderOfNodesAndLinks) {
  PlanRequest request =
      SmallRequest({}, {{"p", "q", 0.02, 1e7}, {"q", "p", 0.03, 2e7}, {"p", "r", 0.05, 1e6}});
  const char* const sites[] = {"p", "q", "r", "p", "q"};
  const double rates[] = {50e9, 50e9, 70e9, 50e9, 30e9};
  for (int i = 0; i < 5; ++i) {
    request.nodes.push_back(SomeNode(absl::StrCat("n", i), sites[i]));
    request.nodes.back().flops_per_second = rates[i];
  }
  const std::string expected = PlanToJson(PlanOf(request));
  std::vector<int> order(5);
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) {
    PlanRequest permuted = request;
    for (int i = 0; i < 5; ++i) permuted.nodes[i] = request.nodes[order[i]];
    if (order[0] % 2 == 1) std::reverse(permuted.links.begin(), permuted.links.end());
    ASSERT_EQ(PlanToJson(PlanOf(permuted)), expected);
  }
}

TEST(MakePlan, MoreMicroBatchesThanAreSimulatedContinueTheLine) {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "east")}, {}, 2);
  const auto seconds = [&](int64_t micro_batches) {
    request.spec.train.global_batch = 4 * micro_batches;
    return PlanOf(request).step_seconds;
  };
  const double at_100 = seconds(100), at_120 = seconds(120);
  EXPECT_NEAR(seconds(1000), at_120 + (at_120 - at_100) / 20 * 880, 1e-6 * seconds(1000));
  request.spec.schedule = "gpipe";
  for (NodeProfile& node : request.nodes) node.memory_bytes *= 2;
  EXPECT_EQ(PlanOf(request).stages[0].slots, 1000);
}

TEST(MakePlan, ExplainsItself) {
  PlanRequest request = SmallRequest({}, {{"east", "west", 0.02, 1e8}});
  request.spec.codec = "auto";
  for (const char* name : {"a", "b"}) request.nodes.push_back(SomeNode(name, "east"));
  for (const char* name : {"c", "d"}) request.nodes.push_back(SomeNode(name, "west"));
  for (NodeProfile& node : request.nodes) node.process_bytes = int64_t{4321} << 20;
  const Plan plan = PlanOf(request);
  ASSERT_GE(plan.reasons.size(), 4u);
  EXPECT_THAT(plan.reasons[0], AllOf(HasSubstr("a step is predicted to take"),
                                     HasSubstr("The next best number of stages")));
  EXPECT_THAT(plan.reasons[1], HasSubstr("What limits: "));
  EXPECT_THAT(plan.reasons[2], HasSubstr("Placement: "));
  const std::string text = PlanToText(plan, request);
  EXPECT_THAT(text, AllOf(HasSubstr("STAGE  NODE"), HasSubstr("Why:\n- ")));
  EXPECT_THAT(text, AllOf(HasSubstr("BESIDE\n"), HasSubstr("4321 MiB\n"))) << text;
  for (const StagePlacement& stage : plan.stages) EXPECT_THAT(text, HasSubstr(stage.node));
}

TEST(MakePlan, SaysThatLatencyLimitsWhenNothingIsBusy) {
  PlanRequest request =
      SmallRequest({SomeNode("a", "east"), SomeNode("b", "west")}, {{"east", "west", 1.0, 1e9}}, 2);
  EXPECT_THAT(PlanOf(request).reasons[1],
              HasSubstr("filling and draining the pipeline and the links' latencies (1 s one way) "
                        "over 8 micro-batches; more and smaller micro-batches would help"));
}

TEST(MakePlan, SaysThatALinkLimitsWhenItIsBusiest) {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "west")},
                                     {{"east", "west", 0.001, 1e6}}, 2);
  EXPECT_THAT(PlanOf(request).reasons[1], AllOf(HasSubstr("What limits: link 0 from node "),
                                                HasSubstr(" at 8 Mbit/s: 131 ms a frame")));
}

TEST(MakePlan, AnUnknownCodecOrScheduleIsRefused) {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "west")}, {}, 2);
  request.spec.codec = "lz5";
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.spec.codec = "none";
  request.spec.schedule = "zigzag";
  EXPECT_EQ(MakePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::coordinator
