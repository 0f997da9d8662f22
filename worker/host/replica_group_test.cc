#include "worker/host/replica_group.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker/comm/testing/in_process_mesh.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

// An exchange that hears nothing of the group that it is asked about.
class SilentExchange : public Exchange {
 public:
  absl::Status WaitForSilence(int peer_group) override {
    return absl::DeadlineExceededError(absl::StrCat("nothing is heard of group ", peer_group));
  }
  absl::Status Serve(const StreamHello&, ServerStream&) override { return Unused(); }
  absl::Status Send(int, const FrameKey&, absl::Span<const float>, absl::Time) override {
    return Unused();
  }
  absl::Status SendDoubles(int, const FrameKey&, absl::Span<const double>, absl::Time) override {
    return Unused();
  }
  absl::Status Receive(int, const FrameKey&, absl::Span<float>, absl::Time) override {
    return Unused();
  }
  absl::StatusOr<std::vector<double>> ReceiveDoubles(int, const FrameKey&, absl::Time) override {
    return Unused();
  }
  absl::Status Flush(absl::Time) override { return Unused(); }
  void Cancel(const absl::Status&) override {}
  ExchangeCounters counters() const override { return {}; }

 private:
  static absl::Status Unused() { return absl::InternalError("nobody calls this"); }
};

// The job of replica 0 of two; the other replica is at the other end of a mesh.
class ReplicaGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::unique_ptr<Mesh>> meshes = MakeInProcessMeshes(2, RealClock());
    group_ = std::make_unique<ReplicaGroup>(MakeCollective(std::move(meshes[0])));
    other_ = MakeCollective(std::move(meshes[1]));
    plan_.stage = 1;
    LinkOptions neighbour;
    neighbour.peer_stage = 0;
    neighbour.peer_group = 0;
    plan_.links = {neighbour};
  }
  absl::Status Sum(Collective& collective) {
    std::vector<float> values = {1, 2};
    return collective.AllReduceSum(absl::MakeSpan(values), RealClock().Now() + kPatience);
  }

  StagePlan plan_;
  SilentExchange exchange_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<Collective> other_;
};

TEST_F(ReplicaGroupTest, ASilentReplicaEndsTheCollective) {
  LinkOptions replica;
  replica.peer_stage = 1;
  replica.peer_group = 2;
  plan_.links.push_back(replica);
  group_->Watch(plan_, exchange_);
  group_->EndWatch();
  EXPECT_EQ(Sum(*group_->collective()), absl::DeadlineExceededError("nothing is heard of group 2"));
}

TEST_F(ReplicaGroupTest, ASilentNeighbourDoesNot) {
  group_->Watch(plan_, exchange_);
  group_->EndWatch();
  absl::Status there;
  std::thread peer([&] { there = Sum(*other_); });
  const absl::Status here = Sum(*group_->collective());
  peer.join();
  EXPECT_TRUE(here.ok() && there.ok()) << here << there;
}

TEST_F(ReplicaGroupTest, CancelEndsTheCollective) {
  group_->Cancel(absl::AbortedError("the run was stopped"));
  group_->Cancel(absl::CancelledError("a second reason"));
  EXPECT_EQ(Sum(*group_->collective()), absl::AbortedError("the run was stopped"));
}

TEST(ReplicaGroup, ListensOnTheHostOfTheDataAddressUnlessItWasCancelled) {
  StagePlan plan;
  plan.replica_names = {"stage 1 replica 0", "stage 1 replica 1"};
  Assignment assignment;
  assignment.stages.resize(1);
  assignment.stages[0].data_address = "127.0.0.1:7000";
  ReplicaGroup group;
  ASSERT_TRUE(group.Listen(plan, assignment, RealClock()).ok());
  EXPECT_NE(group.rendezvous(), "");
  ReplicaGroup cancelled;
  cancelled.Cancel(absl::AbortedError("the run was stopped"));
  EXPECT_EQ(cancelled.Listen(plan, assignment, RealClock()),
            absl::AbortedError("the run was stopped"));
  ReplicaGroup alone;
  plan.replica_names.clear();
  EXPECT_TRUE(alone.Listen(plan, assignment, RealClock()).ok());
  EXPECT_EQ(alone.rendezvous(), "");
}

}  // namespace
}  // namespace longhaul::worker
