#include "coordinator/plan/host_sharing.h"

#include <vector>

#include "coordinator/plan/node_sets.h"
#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::ElementsAre;

NodeProfile Worker(const std::string& name, const std::string& host, int cores, int threads) {
  NodeProfile node = SomeNode(name, "east");
  node.host = host;
  node.host_cores = cores;
  node.threads = threads;
  return node;
}

std::vector<double> SharesOf(const std::vector<NodeProfile>& nodes,
                             const std::vector<int>& chosen) {
  const Hosts hosts = HostsOf(nodes, chosen);
  std::vector<double> shares;
  for (const int host : hosts.host) shares.push_back(ShareOf(hosts, host));
  return shares;
}

TEST(Hosts, NodesSlowEachOtherOnlyBeyondTheCores) {
  const std::vector<NodeProfile> nodes = {Worker("a", "h", 4, 2), Worker("b", "h", 4, 2),
                                          Worker("c", "h", 4, 4), Worker("d", "i", 4, 4)};
  EXPECT_THAT(SharesOf(nodes, {0, 1}), ElementsAre(1, 1));
  EXPECT_THAT(SharesOf(nodes, {0, 1, 2, 3}), ElementsAre(0.5, 0.5, 0.5, 1));
  EXPECT_THAT(SharesOf(nodes, {2, 0}), ElementsAre(4.0 / 6, 4.0 / 6));
}

TEST(Hosts, ANodeAloneWasMeasuredWithItsOwnCrowd) {
  const std::vector<NodeProfile> nodes = {Worker("a", "h", 2, 8), Worker("b", "h", 2, 8)};
  EXPECT_THAT(SharesOf(nodes, {0}), ElementsAre(1));
  EXPECT_THAT(SharesOf(nodes, {0, 1}), ElementsAre(0.5, 0.5));
}

TEST(Hosts, WithoutAHostOrItsCoresNothingIsShared) {
  EXPECT_THAT(SharesOf({Worker("a", "", 1, 4), Worker("b", "", 1, 4)}, {0, 1}), ElementsAre(1, 1));
  EXPECT_THAT(SharesOf({Worker("a", "h", 0, 4), Worker("b", "h", 0, 4)}, {0, 1}),
              ElementsAre(1, 1));
}

TEST(Hosts, ACardIsSharedByThoseThatNameItAndNotWithItsMachine) {
  std::vector<NodeProfile> nodes;
  for (const char* card : {"x", "x", "y", "", ""}) {
    nodes.push_back(Worker("c", "h", 1, 8));
    nodes.back().device_kind = DeviceKind::kCuda;
    nodes.back().device_uuid = card;
  }
  nodes.push_back(Worker("p", "h", 1, 1));
  EXPECT_THAT(SharesOf(nodes, {0, 1, 2, 3, 4, 5}), ElementsAre(0.5, 0.5, 1, 1, 1, 1));
  EXPECT_THAT(SharesOf(nodes, {0, 2, 5}), ElementsAre(1, 1, 1));
}

TEST(FastestNodes, PrefersTheHostThatIsNotCrowded) {
  const std::vector<NodeProfile> nodes = {Worker("a", "h", 1, 1), Worker("b", "h", 1, 1),
                                          Worker("c", "i", 1, 1)};
  const std::vector<double> seconds = {1, 1, 1.5};
  EXPECT_THAT(FastestNodes(nodes, seconds, {0, 1, 2}, 2), ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(CombinedRate(nodes, seconds, std::vector<int>{0, 1}), 1);
  EXPECT_DOUBLE_EQ(CombinedRate(nodes, seconds, std::vector<int>{0, 2}), 1 + 1 / 1.5);
}

TEST(RoomiestNodes, TakesOneOfEachSiteFirst) {
  std::vector<NodeProfile> nodes = {SomeNode("a", "p"), SomeNode("b", "p"), SomeNode("c", "q")};
  nodes[2].memory_bytes /= 2;
  EXPECT_THAT(RoomiestNodes(nodes, {0, 1, 2}, 2), ElementsAre(0, 2));
  EXPECT_THAT(RoomiestNodes(nodes, {0, 1}, 1), ElementsAre(0));
}

}  // namespace
}  // namespace longhaul::coordinator
