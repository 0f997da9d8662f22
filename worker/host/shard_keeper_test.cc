#include "worker/host/shard_keeper.h"

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShardTask Task(int64_t step, bool last = false) {
  ShardTask task;
  task.step = step;
  task.shard.bytes = absl::StrCat("state after step ", step);
  task.shard.shard.sha256 = Sha256Hex(task.shard.bytes);
  task.shard.shard.bytes = task.shard.bytes.size();
  task.last = last;
  return task;
}

class ShardKeeperTest : public testing::Test {
 protected:
  ShardKeeperTest() { Restart(); }
  ~ShardKeeperTest() override { remote_.Cancel(); }

  void Restart() {
    keeper_.reset();
    keeper_ = std::make_unique<ShardKeeper>(
        "r", KeptShards(folder_.path() + "/store", local_, [](const std::string&) {}), remote_,
        clock_, absl::Minutes(3),
        [this](const ShardTask& task, const absl::Status& status) { OnShard(task, status); });
  }

  // Waits for that many callbacks, without time passing.
  std::vector<std::string> Outcomes(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(RealClock().WaitUntil(lock, changed_, RealClock().Now() + kPatience,
                                      [&] { return outcomes_.size() >= count; }));
    return outcomes_;
  }
  std::vector<std::string> OutcomesSoFar() { return Outcomes(0); }
  std::function<void()> Seconds() {
    return [this] { clock_.Advance(absl::Seconds(1)); };
  }

  TestFolder folder_;
  checkpoint::ShardStore local_{folder_.path() + "/store"};
  FakeRemote remote_;
  FakeClock clock_;
  std::unique_ptr<ShardKeeper> keeper_;

 private:
  void OnShard(const ShardTask& task, const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    outcomes_.push_back(absl::StrCat(task.step, " ", absl::StatusCodeToString(status.code()),
                                     task.local.ok() ? "" : ", not here"));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> outcomes_;  // guarded by mutex_
};

TEST_F(ShardKeeperTest, StoresHereAndAtTheCoordinator) {
  keeper_->Put(Task(1));
  EXPECT_THAT(Outcomes(1), ElementsAre("1 OK"));
  const ShardTask task = Task(1);
  EXPECT_EQ(*local_.GetShard(task.shard.shard.sha256), task.shard.bytes);
  EXPECT_EQ(remote_.shards().at(task.shard.shard.sha256), task.shard.bytes);
  EXPECT_EQ(remote_.store_deadline(), clock_.Now() + absl::Minutes(3));
}

TEST_F(ShardKeeperTest, TriesAgainWhileTheCoordinatorIsAway) {
  remote_.AnswerStores({absl::UnavailableError("away"), absl::DeadlineExceededError("slow"),
                        absl::UnavailableError("away")});
  keeper_->Put(Task(1));
  remote_.WaitForStores(4, Seconds());
  EXPECT_THAT(Outcomes(1), ElementsAre("1 OK"));
  EXPECT_GE(clock_.Now(), absl::UnixEpoch() + absl::Seconds(3));
  EXPECT_EQ(remote_.stores_begun(), 4);
}

TEST_F(ShardKeeperTest, StoresHereOnceHoweverOftenTheCoordinatorIsTried) {
  remote_.AnswerStores({absl::UnavailableError("away"), absl::UnavailableError("away")});
  keeper_->Put(Task(1));
  remote_.WaitForStores(1, [] {});
  // Another attempt to store it here would fail.
  std::filesystem::remove_all(folder_.path() + "/store");
  ASSERT_TRUE(WriteFileAtomically(folder_.path() + "/store", "a file where the folder was").ok());
  remote_.WaitForStores(3, Seconds());
  EXPECT_THAT(Outcomes(1), ElementsAre("1 OK"));
}

TEST_F(ShardKeeperTest, OfManyGivenUpOnlyTheNewestAreTold) {
  remote_.HoldStores(true);
  keeper_->Put(Task(1));
  remote_.WaitForStores(1, [] {});
  for (int64_t step = 3; step < 1003; step += 2) keeper_->Put(Task(step));
  remote_.HoldStores(false);
  EXPECT_EQ(Outcomes(ShardKeeper::kGivenUpMax + 2).back(), "1001 OK");
  EXPECT_EQ(OutcomesSoFar().size(), ShardKeeper::kGivenUpMax + 2);
  EXPECT_EQ(OutcomesSoFar()[ShardKeeper::kGivenUpMax], "999 ABORTED");
}

TEST_F(ShardKeeperTest, TakesARefusalForAnAnswer) {
  remote_.AnswerStores({absl::ResourceExhaustedError("the disk is full")});
  keeper_->Put(Task(1, /*last=*/true));
  EXPECT_THAT(Outcomes(1), ElementsAre("1 RESOURCE_EXHAUSTED"));
  Restart();
  keeper_->Put(Task(2));
  EXPECT_THAT(Outcomes(2), ElementsAre("1 RESOURCE_EXHAUSTED", "2 OK"));
  EXPECT_EQ(remote_.stores_begun(), 2);
}

TEST_F(ShardKeeperTest, OneShardWaitsTheRoundestAndOfThoseTheNewest) {
  remote_.HoldStores(true);
  keeper_->Put(Task(5));
  remote_.WaitForStores(1, [] {});
  for (int64_t step = 10; step <= 35; step += 5) keeper_->Put(Task(step));
  EXPECT_THAT(OutcomesSoFar(), IsEmpty());
  remote_.HoldStores(false);
  EXPECT_THAT(Outcomes(7), ElementsAre("5 OK", "15 ABORTED", "10 ABORTED", "25 ABORTED",
                                       "30 ABORTED", "35 ABORTED", "20 OK"));
  EXPECT_EQ(remote_.shards().size(), 2u);
}

TEST_F(ShardKeeperTest, NoneIsRounderThanTheRunsLast) {
  remote_.HoldStores(true);
  keeper_->Put(Task(5));
  remote_.WaitForStores(1, [] {});
  keeper_->Put(Task(64));
  keeper_->Put(Task(67, /*last=*/true));
  remote_.HoldStores(false);
  EXPECT_THAT(Outcomes(3), ElementsAre("5 OK", "64 ABORTED", "67 OK"));
}

TEST_F(ShardKeeperTest, AShardBeingTriedAgainMakesWayForANewer) {
  remote_.AnswerStores({absl::UnavailableError("away")});
  keeper_->Put(Task(1));
  remote_.WaitForStores(1, [] {});
  keeper_->Put(Task(2));
  EXPECT_THAT(Outcomes(2), ElementsAre("1 UNAVAILABLE", "2 OK"));
}

TEST_F(ShardKeeperTest, TheLastShardIsTriedUntilItIsStored) {
  remote_.AnswerStores(std::vector<absl::Status>(50, absl::UnavailableError("away")));
  keeper_->Put(Task(9, /*last=*/true));
  remote_.WaitForStores(51, Seconds());
  EXPECT_THAT(Outcomes(1), ElementsAre("9 OK"));
}

TEST_F(ShardKeeperTest, AShardThatOnlyTheCoordinatorHasIsStored) {
  ASSERT_TRUE(WriteFileAtomically(folder_.path() + "/store", "a file where the folder was").ok());
  keeper_->Put(Task(1));
  EXPECT_THAT(Outcomes(1), ElementsAre("1 OK, not here"));
}

TEST_F(ShardKeeperTest, LeavesWithoutWaitingForTheNextAttempt) {
  remote_.AnswerStores(std::vector<absl::Status>(10, absl::UnavailableError("away")));
  keeper_->Put(Task(1, /*last=*/true));
  remote_.WaitForStores(1, [] {});
  keeper_.reset();  // time stands still
  EXPECT_THAT(OutcomesSoFar(), ElementsAre("1 UNAVAILABLE"));
  EXPECT_EQ(remote_.stores_begun(), 1);
}

TEST_F(ShardKeeperTest, AShardThatWaitsIsStoredHereWhenTheTransferBeforeItIsCancelled) {
  remote_.HoldStores(true);
  keeper_->Put(Task(1));
  remote_.WaitForStores(1, [] {});
  keeper_->Put(Task(2, /*last=*/true));
  remote_.Cancel();
  keeper_.reset();
  EXPECT_THAT(OutcomesSoFar(), ElementsAre("1 CANCELLED", "2 CANCELLED"));
  EXPECT_EQ(*local_.GetShard(Task(2).shard.shard.sha256), Task(2).shard.bytes);
}

TEST_F(ShardKeeperTest, LeavesOnceTheTransferIsCancelled) {
  remote_.HoldStores(true);
  keeper_->Put(Task(1));
  remote_.WaitForStores(1, [] {});
  remote_.Cancel();
  keeper_.reset();
  EXPECT_THAT(OutcomesSoFar(), ElementsAre("1 CANCELLED"));
}

}  // namespace
}  // namespace longhaul::worker
