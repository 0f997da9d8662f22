#include "coordinator/plan/card_sharing.h"

#include <vector>

#include "coordinator/plan/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

NodeProfile WorkerOn(const std::string& card, const std::string& name, int64_t memory) {
  NodeProfile node = SomeCard(name, "east", 2);
  node.device_uuid = card;
  node.device_memory_bytes = 24 * kGiB;
  node.memory_bytes = memory;
  return node;
}

// Of 24 GiB each of two workers leaves 256 MiB and a fiftieth alone.
TEST(ShareCardMemory, DividesWhatTheCardHasByWhatIsStated) {
  const double room = 24.0 * kGiB - 2 * (256.0 * kMiB + 24.0 * kGiB / 50);
  std::vector<NodeProfile> nodes = {WorkerOn("GPU-1", "a", 20 * kGiB),
                                    WorkerOn("GPU-1", "b", 20 * kGiB),
                                    WorkerOn("GPU-2", "c", 20 * kGiB)};
  ShareCardMemory(nodes);
  EXPECT_NEAR(static_cast<double>(nodes[0].memory_bytes), room / 2, 2);
  EXPECT_EQ(nodes[1].memory_bytes, nodes[0].memory_bytes);
  EXPECT_EQ(nodes[2].memory_bytes, 20 * kGiB);
  nodes[0].memory_bytes = 6 * kGiB;
  nodes[1].memory_bytes = 18 * kGiB;
  ShareCardMemory(nodes);
  EXPECT_NEAR(static_cast<double>(nodes[0].memory_bytes), room / 4, 2);
  EXPECT_NEAR(static_cast<double>(nodes[1].memory_bytes), room * 3 / 4, 2);
}

TEST(ShareCardMemory, LeavesAloneWhatFits) {
  std::vector<NodeProfile> nodes = {WorkerOn("GPU-1", "a", 11 * kGiB),
                                    WorkerOn("GPU-1", "b", 11 * kGiB)};
  ShareCardMemory(nodes);
  EXPECT_EQ(nodes[0].memory_bytes, 11 * kGiB);
  for (NodeProfile& node : nodes) {
    node.memory_bytes = 20 * kGiB;
    node.device_memory_bytes = 0;
  }
  ShareCardMemory(nodes);
  EXPECT_EQ(nodes[0].memory_bytes, 20 * kGiB);  // of a card of unknown size
}

TEST(ShareCardMemory, AgainChangesNothing) {
  std::vector<NodeProfile> nodes = {WorkerOn("GPU-1", "a", 20 * kGiB),
                                    WorkerOn("GPU-1", "b", 13 * kGiB),
                                    WorkerOn("GPU-1", "c", 7 * kGiB)};
  ShareCardMemory(nodes);
  const std::vector<NodeProfile> once = nodes;
  ShareCardMemory(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(nodes[i].memory_bytes),
                static_cast<double>(once[i].memory_bytes), 1);
  }
}

// A stage for each fits into either's memory, but not both into the card.
TEST(ShareCardMemory, PlansDoNotPromiseTheCardTwice) {
  PlanRequest request =
      SmallRequest({WorkerOn("GPU-1", "a", 20 * kGiB), WorkerOn("GPU-1", "b", 20 * kGiB)}, {}, 2);
  request.spec.recompute = run::Recompute::kNever;
  const int64_t needed = PlanOf(request).stages[0].memory.total();
  for (NodeProfile& node : request.nodes) {
    node.memory_bytes = 2 * needed;
    node.device_memory_bytes = (2 * 256 * kMiB + needed) * 25 / 24;  // less a 25th of it
  }
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("stage 0 "), HasSubstr(", too little")));
  request.nodes[1].device_uuid = "GPU-2";
  EXPECT_EQ(PlanOf(request).stages.size(), 2u);
}

}  // namespace
}  // namespace longhaul::coordinator
