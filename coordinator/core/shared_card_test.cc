// What the planner is told of workers that share a card.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

constexpr int64_t kGiB = 1 << 30;

// A coordinator, and the newest request for a plan.
class Cluster {
 public:
  Cluster() : state_(Restore(CoreOptions(), {}, {}, absl::UnixEpoch())) {}

  void Do(const Event& event) {
    for (Action& action : Step(state_, event, absl::UnixEpoch())) {
      if (auto* plan = std::get_if<RequestPlan>(&action)) asked = std::move(*plan);
    }
  }

  void Start(uint64_t request, const std::string& name) {
    StartRun start;
    start.request = request;
    start.spec.name = name;
    start.spec.model.context = 8;
    start.spec.train.steps = 100;
    start.spec.train.global_batch = 4;
    Do(start);
  }

  RequestPlan asked;

 private:
  State state_;
};

TEST(SharedCard, AFreeWorkerGetsItsPartWhetherOrNotTheOtherIsBusy) {
  Cluster cluster;
  for (const uint64_t session : {1, 2}) {
    NodeConnected node;
    node.session = session;
    node.facts.incarnation = 1;
    NodeProfile& profile = node.facts.profile;
    profile.name = absl::StrCat("n", session);
    profile.device_kind = DeviceKind::kCuda;
    profile.device_uuid = "GPU-1";
    profile.device_memory_bytes = 24 * kGiB;
    profile.memory_bytes = 20 * kGiB;
    cluster.Do(node);
  }
  cluster.Start(1, "first");
  ASSERT_EQ(cluster.asked.request.nodes.size(), 2u);
  EXPECT_LT(cluster.asked.request.nodes[0].memory_bytes, 12 * kGiB);
  Plan plan;
  plan.numeric_classes = {""};
  plan.stages.emplace_back().node = "n1";
  plan.stages[0].range = {0, 1};
  cluster.Do(PlanMade{"first", cluster.asked.epoch, std::move(plan)});

  cluster.Start(2, "second");
  ASSERT_EQ(cluster.asked.run, "second");
  ASSERT_EQ(cluster.asked.request.nodes.size(), 1u);
  EXPECT_EQ(cluster.asked.request.nodes[0].name, "n2");
  EXPECT_LT(cluster.asked.request.nodes[0].memory_bytes, 12 * kGiB);
  EXPECT_GT(cluster.asked.request.nodes[0].memory_bytes, 10 * kGiB);
}

}  // namespace
}  // namespace longhaul::coordinator
