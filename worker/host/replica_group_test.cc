#include "worker/host/replica_group.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace longhaul::worker {
namespace {

// An exchange that hears nothing of the group that it is asked about.
class SilentExchange : public Exchange {
 public:
  absl::Status WaitForSilence(int peer_group) override {
    return absl::DeadlineExceededError(absl::StrCat("nothing is heard of group ", peer_group));
  }
  absl::Status Serve(ServerStream&) override { return Unused(); }
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

TEST(ReplicaGroup, ASilentReplicaEndsTheGroupButASilentNeighbourDoesNot) {
  StagePlan plan;
  plan.stage = 1;
  plan.replica_names = {"stage 1 replica 0", "stage 1 replica 1"};
  LinkOptions neighbour, replica;
  neighbour.peer_stage = 0;
  neighbour.peer_group = 0;
  replica.peer_stage = 1;
  replica.peer_group = 2;
  plan.links = {neighbour};
  Assignment assignment;
  assignment.stages.resize(1);
  assignment.stages[0].data_address = "127.0.0.1:7000";

  SilentExchange exchange;
  ReplicaGroup alone;
  alone.Watch(plan, exchange);
  alone.EndWatch();
  EXPECT_TRUE(alone.Listen(plan, assignment, RealClock()).ok());

  plan.links = {neighbour, replica};
  ReplicaGroup group;
  group.Watch(plan, exchange);
  group.EndWatch();
  EXPECT_EQ(group.Listen(plan, assignment, RealClock()),
            absl::DeadlineExceededError("nothing is heard of group 2"));
}

}  // namespace
}  // namespace longhaul::worker
