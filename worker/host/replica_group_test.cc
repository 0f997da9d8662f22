#include "worker/host/replica_group.h"

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/testing/counting_backend.h"
#include "gmock/gmock.h"
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
  absl::Status SendEncoded(int, const FrameKey&, const EncodedTensor&, absl::Time) override {
    return Unused();
  }
  absl::Status SendDoubles(int, const FrameKey&, absl::Span<const double>, absl::Time) override {
    return Unused();
  }
  absl::Status Receive(int, const FrameKey&, absl::Span<float>, absl::Time) override {
    return Unused();
  }
  absl::Status ReceiveEncoded(int, const FrameKey&, uint64_t,
                              absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)>,
                              absl::Time) override {
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

// The memory of a device, to those who ask.
class Card : public compute::CountingBackend {
 public:
  using CountingBackend::CountingBackend;
  compute::DeviceKind kind() const override { return compute::DeviceKind::kCuda; }
};

// Sums on devices, over a mesh in memory.
class CardRendezvous : public DeviceRendezvous {
 public:
  CardRendezvous(std::string card, std::string id, std::unique_ptr<Mesh> mesh)
      : offer_{"library 1", std::move(card), std::move(id)}, mesh_(std::move(mesh)) {}
  const DeviceOffer& offer() const override { return offer_; }
  absl::StatusOr<std::unique_ptr<Collective>> Connect(const std::string& id) override {
    EXPECT_EQ(id, "group");
    return MakeCollective(std::move(mesh_));
  }
  void Cancel(const absl::Status& reason) override { mesh_->Cancel(reason); }

 private:
  const DeviceOffer offer_;
  std::unique_ptr<Mesh> mesh_;
};

// Both replicas of a stage, each of which computes on a card of its own unless told otherwise.
class ReplicaMeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as every process that sums over Gloo
    assignment_.stages.resize(1);
    assignment_.stages[0].data_address = "127.0.0.1:7000";
    plan_.replica_names = {"replica 0", "replica 1"};
    auto meshes =
        std::make_shared<std::vector<std::unique_ptr<Mesh>>>(MakeInProcessMeshes(2, RealClock()));
    for (int rank = 0; rank < 2; ++rank) {
      factories_[rank] = [this, meshes, rank](const DeviceRendezvousOptions& options,
                                              compute::Backend& backend, Clock&) {
        EXPECT_EQ(options.rank, rank);
        EXPECT_EQ(options.names, plan_.replica_names);
        return std::make_unique<CardRendezvous>(cards_[rank], rank == 0 ? "group" : "",
                                                std::move((*meshes)[rank]));
      };
    }
  }

  // They meet and sum.
  void Meet() {
    std::vector<std::string> published;
    for (int rank = 0; rank < 2; ++rank) {
      StagePlan plan;
      plan.replica = rank;
      plan.replica_names = plan_.replica_names;
      ASSERT_EQ(
          groups_[rank].Listen(plan, assignment_, *backends_[rank], factories_[rank], RealClock()),
          absl::OkStatus());
      published.push_back(groups_[rank].rendezvous());
    }
    const auto sum = [&](int rank) {
      absl::Status status = groups_[rank].Connect(published);
      std::vector<float> values = {1, 2};
      if (status.ok()) {
        status = groups_[rank].collective()->AllReduceSum(absl::MakeSpan(values),
                                                          RealClock().Now() + kPatience);
      }
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_EQ(values, std::vector<float>({2, 4}));
      groups_[rank].LeaveBackend();
    };
    std::thread other([&] { sum(1); });
    sum(0);
    other.join();
  }

  const std::unique_ptr<compute::Backend> processor_ = compute::MakeCpuBackend(1);
  Card card_{*processor_};
  StagePlan plan_;
  Assignment assignment_;
  std::vector<std::string> cards_ = {"card 0", "card 1"};
  DeviceRendezvousFactory factories_[2];
  compute::Backend* backends_[2] = {&card_, &card_};
  ReplicaGroup groups_[2];
};

TEST_F(ReplicaMeetingTest, SumsOnTheDevicesWhereAllCan) {
  Meet();
  EXPECT_EQ(groups_[0].how(), "sums gradients over library 1");
  EXPECT_EQ(groups_[1].how(), "sums gradients over library 1");
}

// The collective's end took what the rendezvous cancelled.
TEST_F(ReplicaMeetingTest, CancelAfterTheBackendWasLeftReachesNoRendezvous) {
  Meet();
  for (ReplicaGroup& group : groups_) group.Cancel(absl::AbortedError("the stage has ended"));
}

// Debian's Gloo is not instrumented: what its atomics order would be reported as races.
#ifndef __SANITIZE_THREAD__

TEST_F(ReplicaMeetingTest, SumsOnTheHostsWhereOneIsOnAProcessor) {
  backends_[1] = processor_.get();
  Meet();
  EXPECT_EQ(groups_[0].how(), "sums gradients over the hosts: replica 1 cannot sum on a device");
  EXPECT_EQ(groups_[1].how(), "");
}

TEST_F(ReplicaMeetingTest, SumsOnTheHostsWhereALibraryIsMissing) {
  factories_[0] = [](const DeviceRendezvousOptions&, compute::Backend&, Clock&) {
    return absl::FailedPreconditionError("the library is not to be had");
  };
  Meet();
  EXPECT_EQ(groups_[0].how(),
            "sums gradients over the hosts: replica 0 cannot sum on a device; this one: the "
            "library is not to be had");
  EXPECT_EQ(groups_[1].how(), "sums gradients over the hosts: replica 0 cannot sum on a device");
}

TEST_F(ReplicaMeetingTest, SumsOnTheHostsWhereTwoShareACard) {
  cards_[1] = cards_[0];
  Meet();
  EXPECT_EQ(groups_[1].how(),
            "sums gradients over the hosts: replica 1 and replica 0 share one card");
}

TEST_F(ReplicaMeetingTest, SumsOnTheHostsInTheirOrderWhereItIsToBeExact) {
  assignment_.spec.exact_replicas = true;
  Meet();
  EXPECT_THAT(groups_[1].how(), testing::HasSubstr("`exact_replicas` wants the hosts' order"));
}

TEST_F(ReplicaMeetingTest, RefusesWhatNoReplicaPublishes) {
  ASSERT_TRUE(groups_[0].Listen(plan_, assignment_, *processor_, nullptr, RealClock()).ok());
  const std::string own = groups_[0].rendezvous();
  EXPECT_EQ(groups_[0].Connect({own}).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status status = groups_[0].Connect({own, "bytes"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("the rendezvous of replica 1"));
}

#endif  // __SANITIZE_THREAD__

TEST(ReplicaGroup, ListensOnTheHostOfTheDataAddressUnlessItWasCancelled) {
  const std::unique_ptr<compute::Backend> processor = compute::MakeCpuBackend(1);
  StagePlan plan;
  plan.replica_names = {"stage 1 replica 0", "stage 1 replica 1"};
  Assignment assignment;
  assignment.stages.resize(1);
  assignment.stages[0].data_address = "127.0.0.1:7000";
  ReplicaGroup group;
  ASSERT_TRUE(group.Listen(plan, assignment, *processor, nullptr, RealClock()).ok());
  EXPECT_NE(group.rendezvous(), "");
  ReplicaGroup cancelled;
  cancelled.Cancel(absl::AbortedError("the run was stopped"));
  EXPECT_EQ(cancelled.Listen(plan, assignment, *processor, nullptr, RealClock()),
            absl::AbortedError("the run was stopped"));
  ReplicaGroup alone;
  plan.replica_names.clear();
  EXPECT_TRUE(alone.Listen(plan, assignment, *processor, nullptr, RealClock()).ok());
  EXPECT_EQ(alone.rendezvous(), "");
}

}  // namespace
}  // namespace longhaul::worker
