#include "worker/comm/nccl_collective.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/comm/testing/collective_contract.h"
#include "worker/comm/testing/staged_group.h"

namespace longhaul::worker {
namespace {

using compute::emulated::TheMachine;
using compute::emulated::TheNccl;
using ::testing::Combine;
using ::testing::HasSubstr;
using ::testing::Range;
using ::testing::Values;

absl::Time In(absl::Duration duration) { return RealClock().Now() + duration; }

// Card `device` of the emulated machine, which gets as many as it takes.
std::unique_ptr<compute::Backend> Card(int device) {
  TheMachine().devices = std::max(TheMachine().devices, device + 1);
  auto backend = compute::MakeCudaBackend(device, RealClock());
  LH_CHECK(backend.ok(), backend.status().ToString());
  return *std::move(backend);
}

std::unique_ptr<CollectiveGroup> StagedOnCards(int size) {
  return std::make_unique<StagedGroup>(size, &Card);
}

INSTANTIATE_TEST_SUITE_P(Staged, CollectiveTest,
                         Combine(Values(CollectiveCase{"staged on cards", &StagedOnCards}),
                                 Range(2, 4)));

DeviceRendezvousOptions Options(int rank, int size,
                                absl::Duration connect_max = absl::Seconds(60)) {
  DeviceRendezvousOptions options;
  options.rank = rank;
  for (int other = 0; other < size; ++other)
    options.names.push_back(absl::StrCat("replica ", other));
  options.connect_max = connect_max;
  return options;
}

// Replicas of which each has a card of its own.
class NcclGroup : public BackendGroup {
 public:
  explicit NcclGroup(int size, Clock& clock = RealClock()) : collectives_(size) {
    TheNccl() = {};
    std::vector<std::unique_ptr<DeviceRendezvous>> listening;
    for (int rank = 0; rank < size; ++rank) {
      backends_.push_back(Card(rank));
      auto opened = NcclRendezvousFactory()(Options(rank, size), *backends_[rank], clock);
      LH_CHECK(opened.ok(), opened.status().ToString());
      listening.push_back(*std::move(opened));
    }
    OnThreads(size, [&](int rank) {
      auto met = listening[rank]->Connect(listening[0]->offer().id);
      LH_CHECK(met.ok(), met.status().ToString());
      collectives_[rank] = *std::move(met);
      LH_CHECK(collectives_[rank]->on_device());
    });
  }
  ~NcclGroup() override { collectives_.clear(); }

  Collective& Of(int rank) override { return *collectives_[rank]; }
  void Kill(int rank) override {
    collectives_[rank]->Cancel(absl::AbortedError("its process is killed"));
    collectives_[rank].reset();
  }
  // In good order.
  void Leave(int rank) { collectives_[rank].reset(); }

 private:
  std::vector<std::unique_ptr<Collective>> collectives_;
};

std::unique_ptr<CollectiveGroup> OverNccl(int size) { return std::make_unique<NcclGroup>(size); }

INSTANTIATE_TEST_SUITE_P(Nccl, CollectiveTest,
                         Combine(Values(CollectiveCase{"NCCL", &OverNccl, false}), Range(2, 5)));

// Does it on a thread while time goes by, in steps that are small beside every deadline that must
// not pass.
void WhileTimeGoesBy(FakeClock& clock, const std::function<void()>& work,
                     absl::Duration step = absl::Microseconds(20)) {
  std::atomic<bool> done = false;
  std::thread works([&] {
    work();
    done = true;
  });
  while (!done) {
    clock.Advance(step);
    std::this_thread::yield();
  }
  works.join();
}

TEST(NcclCollective, EndsInGoodOrderWithoutAnAbort) {
  {
    NcclGroup group(3);
    std::vector<absl::Span<float>> places;
    for (int rank = 0; rank < 3; ++rank) places.push_back(group.Put(rank, {1, 2}));
    OnThreads(3, [&](int rank) {
      EXPECT_TRUE(group.Of(rank).AllReduceSum(places[rank], In(absl::Seconds(60))).ok());
      group.Leave(rank);
    });
  }
  EXPECT_EQ(TheNccl().communicators, 3);
  EXPECT_EQ(TheNccl().destroyed, 3);
  EXPECT_EQ(TheNccl().aborted, 0);
}

TEST(NcclCollective, AnErrorOfNcclIsSaidInItsWordsAndAborts) {
  NcclGroup group(2);
  TheNccl().state = ncclSystemError;
  TheNccl().words = "NET/Socket: no route to host";
  const absl::Span<float> values = group.Put(0, std::vector<float>(17, 1));
  const absl::Status status = group.Of(0).AllReduceSum(values, In(absl::Seconds(60)));
  EXPECT_EQ(status, absl::UnavailableError(
                        "replica 0: the sum of 17 values with replica 1 over NCCL: unhandled "
                        "system error (NET/Socket: no route to host)"));
  EXPECT_EQ(TheNccl().aborted, 1);
  // The first reason stays.
  std::vector<double> doubles = {1};
  EXPECT_EQ(group.Of(0).SumDoubles(absl::MakeSpan(doubles), In(absl::Seconds(60))), status);
  group.Of(0).Cancel(absl::AbortedError("too late"));
  EXPECT_EQ(group.Of(0).Broadcast(values, In(absl::Seconds(60))), status);
  EXPECT_EQ(TheNccl().aborted, 1);
}

TEST(NcclCollective, ACallThatNcclRefusesEndsIt) {
  NcclGroup group(2);
  TheNccl().call_result = ncclInvalidUsage;
  const absl::Status status = group.Of(1).Broadcast(group.Put(1, {1, 2}), In(absl::Seconds(60)));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("replica 1: the broadcast of 2 values with replica 0 over NCCL: invalid"));
  EXPECT_EQ(TheNccl().aborted, 1);
}

TEST(NcclCollective, ADeviceThatFailsEndsIt) {
  NcclGroup group(2);
  const absl::Span<float> values = group.Put(0, {1, 2});
  TheMachine().fails = true;
  const absl::Status status = group.Of(0).AllReduceSum(values, In(absl::Seconds(60)));
  TheMachine().fails = false;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(TheNccl().aborted, 1);
}

TEST(NcclCollective, AnEndThatHangsIsAborted) {
  FakeClock clock;
  std::unique_ptr<NcclGroup> group;
  WhileTimeGoesBy(clock, [&] { group = std::make_unique<NcclGroup>(2, clock); });
  TheNccl().finalize_hangs = true;
  WhileTimeGoesBy(clock, [&] { group->Leave(0); });
  EXPECT_EQ(TheNccl().aborted, 1);
  EXPECT_EQ(TheNccl().destroyed, 0);
  TheNccl().finalize_hangs = false;
  WhileTimeGoesBy(clock, [&] { group.reset(); });
  EXPECT_EQ(TheNccl().destroyed, 1);
}

// The end of a communicator waits for its card.
TEST(NcclCollective, ACardThatHangsIsNamedAndItsCommunicatorLeftAlone) {
  FakeClock clock;
  std::unique_ptr<NcclGroup> group;
  WhileTimeGoesBy(clock, [&] { group = std::make_unique<NcclGroup>(2, clock); });
  double sums[] = {1, 2};
  TheMachine().hangs = true;
  absl::Status status;
  WhileTimeGoesBy(
      clock,
      [&] {
        status = group->Of(1).SumDoubles(absl::MakeSpan(sums), absl::InfiniteFuture());
        group->Leave(1);
      },
      absl::Seconds(1));
  TheMachine().hangs = false;
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("replica 1: CUDA device 1 hangs: a copy for the replicas' sums"));
  EXPECT_EQ(TheNccl().aborted, 0);
  EXPECT_EQ(TheNccl().destroyed, 0);
  WhileTimeGoesBy(clock, [&] { group.reset(); });
}

class NcclRendezvousTest : public testing::Test {
 protected:
  void SetUp() override {
    TheNccl() = {};
    card_ = Card(0);
    other_card_ = Card(1);
  }
  absl::StatusOr<std::unique_ptr<DeviceRendezvous>> Open(
      int rank, compute::Backend& backend, absl::Duration connect_max = absl::Seconds(60)) {
    return NcclRendezvousFactory()(Options(rank, 2, connect_max), backend, RealClock());
  }

  std::unique_ptr<compute::Backend> card_, other_card_;
};

TEST_F(NcclRendezvousTest, OffersTheLibraryTheCardAndOfTheFirstReplicaTheGroup) {
  const auto first = Open(0, *card_), second = Open(1, *other_card_), same = Open(1, *card_);
  ASSERT_TRUE(first.ok() && second.ok() && same.ok());
  EXPECT_EQ((*first)->offer().library, "nccl 2.28.9");
  EXPECT_EQ((*first)->offer().id.size(), sizeof(ncclUniqueId));
  EXPECT_EQ((*second)->offer().library, "nccl 2.28.9");
  EXPECT_EQ((*second)->offer().id, "");
  EXPECT_NE((*second)->offer().card, (*first)->offer().card);
  EXPECT_EQ((*same)->offer().card, (*first)->offer().card);
}

TEST_F(NcclRendezvousTest, OffersNothingWhereItCannotSum) {
  const auto processor = compute::MakeCpuBackend(1);
  EXPECT_EQ(Open(0, *processor).status().code(), absl::StatusCode::kFailedPrecondition);
  TheNccl().id_result = ncclSystemError;
  TheNccl().words = "no socket interface found";
  const absl::Status status = Open(0, *card_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no socket interface found"));
  EXPECT_TRUE(Open(1, *card_).ok());
}

TEST_F(NcclRendezvousTest, NamesWhoDoesNotCome) {
  const auto own = Open(0, *card_, absl::Milliseconds(30));
  ASSERT_TRUE(own.ok());
  const absl::Status status = (*own)->Connect((*own)->offer().id).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 1 did not come in time"));
  EXPECT_EQ(TheNccl().aborted, 1);
}

TEST_F(NcclRendezvousTest, ASumThatCannotBeIsSaidBeforeTraining) {
  const auto own = Open(0, *card_), other = Open(1, *other_card_);
  ASSERT_TRUE(own.ok() && other.ok());
  TheNccl().call_result = ncclUnhandledCudaError;
  absl::Status of_own, of_other;
  std::thread others([&] { of_other = (*other)->Connect((*own)->offer().id).status(); });
  of_own = (*own)->Connect((*own)->offer().id).status();
  others.join();
  for (const absl::Status& status : {of_own, of_other}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the first sum"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("`nccl: false`"));
  }
  EXPECT_EQ(TheNccl().destroyed, 0);
  EXPECT_EQ(TheNccl().aborted, 2);
}

TEST_F(NcclRendezvousTest, CancelEndsConnect) {
  const auto own = Open(0, *card_);
  ASSERT_TRUE(own.ok());
  std::thread cancels([&] { (*own)->Cancel(absl::AbortedError("the run was stopped")); });
  EXPECT_EQ((*own)->Connect((*own)->offer().id).status(),
            absl::AbortedError("the run was stopped"));
  cancels.join();
}

TEST_F(NcclRendezvousTest, RefusesAnIdOfAnotherSize) {
  const auto own = Open(1, *card_);
  ASSERT_TRUE(own.ok());
  const absl::Status status = (*own)->Connect("id").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 0 published an id of 2 bytes"));
  EXPECT_EQ(TheNccl().communicators, 0);
}

}  // namespace
}  // namespace longhaul::worker
