#include "coordinator/plan/replicas.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double Slowest(const std::vector<double>& seconds, const std::vector<int>& shares) {
  double slowest = 0;
  for (size_t r = 0; r < shares.size(); ++r) slowest = std::max(slowest, shares[r] * seconds[r]);
  return slowest;
}

// Every way to give out the rest, for the replicas from `r` on.
double BestByTrying(const std::vector<double>& seconds, std::vector<int>& shares, size_t r,
                    int rest) {
  if (r + 1 == seconds.size()) {
    shares[r] = rest;
    return rest < 1 ? 1e9 : Slowest(seconds, shares);
  }
  double best = 1e9;
  for (shares[r] = 1; shares[r] <= rest; ++shares[r]) {
    const int share = shares[r];
    best = std::min(best, BestByTrying(seconds, shares, r + 1, rest - share));
    shares[r] = share;
  }
  return best;
}

TEST(SharesBySpeed, NoOtherSharesAreDoneEarlier) {
  std::mt19937 random(4);
  for (int i = 0; i < 100; ++i) {
    std::vector<double> seconds(1 + random() % 4);
    for (double& value : seconds) value = 0.1 + static_cast<double>(random() % 100) / 30;
    const int micro_batches = static_cast<int>(seconds.size() + random() % 10);
    const std::vector<int> shares = SharesBySpeed(seconds, micro_batches);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), micro_batches);
    EXPECT_GE(*std::min_element(shares.begin(), shares.end()), 1);
    std::vector<int> tried(seconds.size(), 1);
    EXPECT_LE(Slowest(seconds, shares), BestByTrying(seconds, tried, 0, micro_batches) + 1e-9);
  }
  EXPECT_THAT(SharesBySpeed({1, 3}, 8), ElementsAre(6, 2));
}

PlanRequest WithReplicas(std::vector<NodeProfile> nodes, std::vector<int64_t> replicas,
                         int stages) {
  PlanRequest request = SmallRequest(std::move(nodes), {}, stages);
  request.spec.replicas = std::move(replicas);
  request.spec.stages = stages;
  return request;
}

std::vector<NodeProfile> Nodes(int count, const std::string& site = "east") {
  std::vector<NodeProfile> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back(SomeNode(site + std::to_string(i), site));
  return nodes;
}

TEST(Replicas, AreAsManyAsAskedForOfEachStage) {
  const Plan plan = PlanOf(WithReplicas(Nodes(5), {3, 2}, 2));
  ASSERT_EQ(plan.stages.size(), 5u);
  EXPECT_EQ(plan.StageCount(), 2);
  EXPECT_EQ(plan.link_codecs.size(), 1u);
  std::vector<int> replicas;
  for (const StagePlacement& group : plan.stages) replicas.push_back(group.replica);
  EXPECT_THAT(replicas, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_EQ(plan.NameOf(4), "stage 1 replica 1");
  for (int group = 0; group < 5; ++group) {
    const StagePlacement& leader = plan.stages[group < 3 ? 0 : 3];
    EXPECT_EQ(plan.stages[group].range, leader.range);
  }
  EXPECT_EQ(
      plan.stages[0].micro_batches + plan.stages[1].micro_batches + plan.stages[2].micro_batches,
      8);
  EXPECT_THAT(plan.reasons[0], HasSubstr("Replicas: stage 0 on 3 nodes of its site, which take "));
}

TEST(Replicas, SharesFollowTheSpeeds) {
  std::vector<NodeProfile> nodes = Nodes(2);
  nodes[1].flops_per_second *= 3;
  const Plan plan = PlanOf(WithReplicas(nodes, {2}, 1));
  ASSERT_EQ(plan.stages.size(), 2u);
  for (const StagePlacement& group : plan.stages) {
    EXPECT_EQ(group.micro_batches, group.node == "east1" ? 6 : 2);
  }
}

TEST(Replicas, ShortenTheStep) {
  const double one = PlanOf(WithReplicas(Nodes(1), {1}, 1)).step_seconds;
  const double two = PlanOf(WithReplicas(Nodes(2), {2}, 1)).step_seconds;
  const double four = PlanOf(WithReplicas(Nodes(4), {4}, 1)).step_seconds;
  EXPECT_LT(two, 0.6 * one);
  EXPECT_LT(four, 0.6 * two);
}

TEST(Replicas, AutoTakesWhatPaysAndNoMore) {
  const Plan one = PlanOf(WithReplicas(Nodes(4), {0}, 1));
  EXPECT_EQ(one.stages.size(), 4u);
  // All on one host with one core: nothing gets faster.
  std::vector<NodeProfile> crowded = Nodes(4);
  for (NodeProfile& node : crowded) {
    node.host = "one";
    node.host_cores = 1;
  }
  EXPECT_EQ(PlanOf(WithReplicas(crowded, {0}, 1)).stages.size(), 1u);
}

TEST(Replicas, AreInTheStagesSiteAndOnTrustedNetworks) {
  std::vector<NodeProfile> nodes = Nodes(2, "east");
  const std::vector<NodeProfile> west = Nodes(2, "west");
  nodes.insert(nodes.end(), west.begin(), west.end());
  const Plan plan = PlanOf(WithReplicas(nodes, {2}, 2));
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_EQ(plan.stages[0].node.substr(0, 4), plan.stages[1].node.substr(0, 4));
  EXPECT_EQ(plan.stages[2].node.substr(0, 4), plan.stages[3].node.substr(0, 4));
  nodes[3].trusted_network = false;
  EXPECT_THAT(RefusalOf(WithReplicas(nodes, {2}, 2)),
              HasSubstr("pipeline.replicas asks for 2 replicas of stage"));
  EXPECT_EQ(PlanOf(WithReplicas(nodes, {0}, 2)).StageCount(), 2);
  EXPECT_THAT(RefusalOf(WithReplicas(Nodes(3), {4}, 1)),
              HasSubstr("site east has 3 nodes, 3 of them with `trusted_network: true`"));
}

TEST(Replicas, AreNoNodesThatThePlannerLeavesOut) {
  std::vector<NodeProfile> nodes = Nodes(4);
  nodes[1].bytes_per_second = 0;
  nodes[2].threads = 0;
  EXPECT_THAT(NodesOf(PlanOf(WithReplicas(nodes, {2}, 1))), ElementsAre("east0", "east3"));
  EXPECT_THAT(NodesOf(PlanOf(WithReplicas(nodes, {0}, 1))), ElementsAre("east0", "east3"));
  EXPECT_THAT(RefusalOf(WithReplicas(nodes, {3}, 1)), HasSubstr("site east has 2 nodes"));
}

TEST(Replicas, ExactOnesTakeEqualBlocksAndMoreMemory) {
  PlanRequest request = WithReplicas(Nodes(4), {4}, 1);
  const int64_t plain = PlanOf(request).stages[0].memory.gradients;
  request.spec.exact_replicas = true;
  const Plan plan = PlanOf(request);
  for (const StagePlacement& group : plan.stages) {
    EXPECT_EQ(group.micro_batches, 2);
    EXPECT_EQ(group.memory.gradients, 2 * plain);
  }
  request.spec.replicas = {0};
  request.nodes.pop_back();
  EXPECT_EQ(PlanOf(request).stages.size(), 2u);  // three are not allowed
}

TEST(Replicas, AMemoryThatDoesNotSufficeIsRefusedWithTheNumbers) {
  PlanRequest request = WithReplicas(Nodes(2), {2}, 1);
  const int64_t needed = PlanOf(request).stages[0].memory.total();
  request.nodes[1].memory_bytes = needed / 2;
  EXPECT_THAT(RefusalOf(request), HasSubstr("stage 0 replica 1 needs "));
}

// Beside its stage a card holds 8 tensors of the cut on their way, of 4 x 64 x 128 floats each.
TEST(Replicas, CardsHaveRoomForWhatIsOnItsWay) {
  std::vector<NodeProfile> cards;
  for (const char* name : {"a", "b", "c", "d"}) cards.push_back(SomeCard(name, "east", 2));
  PlanRequest request = WithReplicas(cards, {2}, 2);
  request.spec.train.precision = model::Precision::kFloat32;
  const StagePlacement last = PlanOf(request).stages.back();
  ASSERT_EQ(last.replica, 1);
  for (NodeProfile& node : request.nodes) {
    node.device_uuid = "shared";  // their hosts sum
    if (node.name == last.node) node.memory_bytes = last.memory.total();
  }
  EXPECT_THAT(RefusalOf(request), HasSubstr("stage 1 replica 1 needs "));
  for (NodeProfile& node : request.nodes) {
    if (node.name == last.node) node.memory_bytes += 8 * 4 * 64 * 128 * int64_t{sizeof(float)};
  }
  EXPECT_EQ(PlanOf(request).stages.size(), 4u);
}

TEST(Replicas, CardsOfTheirOwnHaveRoomForNccl) {
  PlanRequest request = WithReplicas({SomeCard("a", "east", 2), SomeCard("b", "east", 2)}, {2}, 1);
  request.spec.train.precision = model::Precision::kFloat32;
  const int64_t needed = PlanOf(request).stages[1].memory.total();
  request.nodes[1].memory_bytes = needed + (int64_t{512} << 20) - 1;
  EXPECT_THAT(RefusalOf(request), HasSubstr("stage 0 replica 1 needs "));
  ++request.nodes[1].memory_bytes;
  EXPECT_EQ(PlanOf(request).stages.size(), 2u);
  // On one card, as of processors, their hosts sum.
  for (NodeProfile& node : request.nodes) node.device_uuid = "shared";
  request.nodes[1].memory_bytes = needed;
  EXPECT_EQ(PlanOf(request).stages.size(), 2u);
}

TEST(Replicas, SurviveTheJournal) {
  const Plan plan = PlanOf(WithReplicas(Nodes(5), {3, 2}, 2));
  const auto back = PlanFromJson(PlanToJson(plan));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->stages.size(), plan.stages.size());
  for (size_t group = 0; group < plan.stages.size(); ++group) {
    EXPECT_EQ(back->stages[group].node, plan.stages[group].node);
    EXPECT_EQ(back->stages[group].replica, plan.stages[group].replica);
    EXPECT_EQ(back->stages[group].micro_batches, plan.stages[group].micro_batches);
    EXPECT_EQ(back->stages[group].range, plan.stages[group].range);
  }
  EXPECT_THAT(PlanToText(plan, WithReplicas(Nodes(5), {3, 2}, 2)),
              HasSubstr("1 replica 1, 4 micro-batches"));
}

}  // namespace
}  // namespace longhaul::coordinator
