#include "worker/host/stage_state.h"

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "compute/backend/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "model/stage_parameters.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Another number for every element of every tensor of the state.
float Value(int parameter, int part, size_t element) {
  return static_cast<float>(parameter) + 0.25f * static_cast<float>(part) +
         1e-4f * static_cast<float>(element % 1000);
}

// A checkpoint of a tied model as two stages would write it.
class StageStateTest : public testing::Test {
 protected:
  StageStateTest() {
    const int cut = graph_.BlockPoints()[1];
    const int end = static_cast<int>(graph_.ops.size());
    const std::vector<model::OpRange> ranges = {{0, cut}, {cut, end}};
    manifest_.run = "r";
    manifest_.step = 5;
    for (int stage = 0; stage < 2; ++stage) {
      const auto saved = MakeStage(ranges[stage]);
      for (auto& parameter : saved->parameters()) {
        for (size_t i = 0; i < parameter.weights.size(); ++i) {
          parameter.weights[i] = Value(parameter.index, 0, i);
          parameter.first_moment[i] = Value(parameter.index, 1, i);
          parameter.second_moment[i] = Value(parameter.index, 2, i);
        }
      }
      shards_.push_back(
          SaveStage(graph_, model::OwnedParameters(graph_, ranges)[stage], *saved).value());
      manifest_.shards.push_back(shards_.back().shard);
    }
    last_stage_ = ranges[1];
  }

  std::unique_ptr<compute::Stage<float>> MakeStage(model::OpRange range) {
    return *compute::Stage<float>::Create(graph_, {range, /*micro_batch=*/1, /*slots=*/1},
                                          *backend_, /*seed=*/1);
  }
  absl::Status Load(compute::Stage<float>& stage) {
    return LoadStage(
        graph_, manifest_, stage,
        {&kept_, &remote_, [this] { return MakePatience(); }, [this] { return GoesOn(); },
         [this](const std::string& note) { notes_.push_back(note); }},
        damaged_shard_);
  }
  // Time passes in the pauses only.
  Patience MakePatience() {
    return {&clock_, clock_.Now() + absl::Seconds(20), [this](absl::Duration pause) {
              clock_.Advance(pause);
              return ended_;
            }};
  }
  absl::Status GoesOn() {
    ++goes_on_;
    return ended_;
  }
  void ExpectLoaded(compute::Stage<float>& stage) {
    for (const auto& parameter : stage.parameters()) {
      for (size_t i = 0; i < parameter.weights.size(); ++i) {
        ASSERT_EQ(parameter.weights[i], Value(parameter.index, 0, i));
        ASSERT_EQ(parameter.first_moment[i], Value(parameter.index, 1, i));
        ASSERT_EQ(parameter.second_moment[i], Value(parameter.index, 2, i));
      }
    }
  }
  void PutLocal(int shard) {
    ASSERT_TRUE(local_.PutShard(shards_[shard].shard.sha256, shards_[shard].bytes).ok());
  }
  void PutRemote(int shard) { remote_.SetShard(shards_[shard].shard.sha256, shards_[shard].bytes); }
  model::OpRange WholeModel() const { return {0, static_cast<int>(graph_.ops.size())}; }

  TestFolder folder_;
  const model::Graph graph_ = *model::BuildGraph(TestSpec("r").model);
  std::unique_ptr<compute::Backend> backend_ = compute::MakeCpuBackend(1);
  checkpoint::ShardStore local_{folder_.path()};
  KeptShards kept_{folder_.path(), local_, [](const std::string& text) { ADD_FAILURE() << text; }};
  FakeRemote remote_;
  std::vector<checkpoint::EncodedShard> shards_;
  checkpoint::Manifest manifest_;
  model::OpRange last_stage_;
  FakeClock clock_;
  absl::Status ended_;
  int goes_on_ = 0;
  std::vector<std::string> notes_;
  std::string damaged_shard_;
};

TEST_F(StageStateTest, AnyPartitionLoadsWhatAnotherSaved) {
  PutLocal(0);
  PutRemote(1);
  for (const model::OpRange range : {WholeModel(), last_stage_}) {
    const auto stage = MakeStage(range);
    ASSERT_TRUE(Load(*stage).ok());
    ExpectLoaded(*stage);
  }
}

TEST_F(StageStateTest, WhatThisNodeHasIsNotFetched) {
  PutLocal(0);
  PutLocal(1);
  const auto stage = MakeStage(WholeModel());
  ASSERT_TRUE(Load(*stage).ok());
  ExpectLoaded(*stage);
  EXPECT_EQ(remote_.shard_fetches(), 0);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(StageStateTest, FetchesOnlyShardsThatTheStageNeeds) {
  PutRemote(0);
  const int cut = graph_.BlockPoints()[0];
  const auto stage = MakeStage({0, cut});
  ASSERT_TRUE(Load(*stage).ok());
  ExpectLoaded(*stage);
  EXPECT_EQ(remote_.shard_fetches(), 1);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("fetched shard")));
}

TEST_F(StageStateTest, ADamagedCopyHereIsFetchedAndSaidAloud) {
  PutLocal(0);
  PutLocal(1);
  PutRemote(0);
  std::string damaged = shards_[0].bytes;
  damaged[damaged.size() / 2] ^= 1;
  const std::string path = folder_.path() + "/shards/" + shards_[0].shard.sha256;
  ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
  const auto stage = MakeStage(WholeModel());
  ASSERT_TRUE(Load(*stage).ok());
  ExpectLoaded(*stage);
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("no good"), HasSubstr(path)),
                                  HasSubstr("fetched shard")));
}

TEST_F(StageStateTest, ADamagedShardFromTheCoordinatorIsNamed) {
  PutLocal(0);
  std::string damaged = shards_[1].bytes;
  damaged.back() ^= 1;
  remote_.SetShard(shards_[1].shard.sha256, damaged);
  const auto stage = MakeStage(WholeModel());
  const absl::Status status = Load(*stage);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(shards_[1].shard.sha256));
  EXPECT_THAT(std::string(status.message()), HasSubstr("coordinator"));
  EXPECT_EQ(damaged_shard_, shards_[1].shard.sha256);
}

TEST_F(StageStateTest, AShardThatNobodyHasIsNamed) {
  PutLocal(0);
  const auto stage = MakeStage(WholeModel());
  const absl::Status status = Load(*stage);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(shards_[1].shard.sha256));
  EXPECT_EQ(damaged_shard_, shards_[1].shard.sha256);
}

TEST_F(StageStateTest, AParameterThatNoShardHasIsNamed) {
  PutLocal(0);
  PutLocal(1);
  std::vector<std::string>& names = manifest_.shards[1].parameters;
  const std::string missing = names.back();
  names.pop_back();
  const auto stage = MakeStage(WholeModel());
  const absl::Status status = Load(*stage);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("'" + missing + "'"));
  EXPECT_EQ(damaged_shard_, "");
}

// The manifest says what is in a shard; its bytes say otherwise.
TEST_F(StageStateTest, AShardWithoutAParameterItShouldHoldIsRefused) {
  PutLocal(0);
  PutLocal(1);
  PutRemote(0);
  PutRemote(1);
  const std::string moved = manifest_.shards[1].parameters.back();
  manifest_.shards[1].parameters.pop_back();
  manifest_.shards[0].parameters.push_back(moved);
  const auto stage = MakeStage(WholeModel());
  EXPECT_EQ(Load(*stage).code(), absl::StatusCode::kDataLoss);
}

TEST_F(StageStateTest, AnImpossibleSizeIsRefusedBeforeItIsFetched) {
  PutRemote(0);
  PutRemote(1);
  manifest_.shards[0].bytes = uint64_t{1} << 60;
  const auto stage = MakeStage(WholeModel());
  const absl::Status status = Load(*stage);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(shards_[0].shard.sha256));
  EXPECT_EQ(remote_.shard_fetches(), 0);
}

TEST_F(StageStateTest, ACoordinatorThatIsAwayIsAskedAgainUntilTheDeadline) {
  for (const int shard : {0, 1}) PutRemote(shard);
  const auto stage = MakeStage(WholeModel());
  remote_.AnswerFetches(std::vector<absl::Status>(3, absl::UnavailableError("away")));
  const absl::Status status = Load(*stage);
  ASSERT_TRUE(status.ok()) << status;
  ExpectLoaded(*stage);
  EXPECT_EQ(remote_.shard_fetches(), 3 + 2);
  EXPECT_EQ(clock_.Now() - absl::UnixEpoch(), absl::Seconds(0.5 + 1 + 2));

  std::filesystem::remove_all(folder_.path() + "/shards");
  remote_.AnswerFetches(std::vector<absl::Status>(100, absl::UnavailableError("away")));
  EXPECT_EQ(Load(*stage).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(clock_.Now() - absl::UnixEpoch(), absl::Seconds(20));
  EXPECT_GT(clock_.Now() - absl::UnixEpoch(), absl::Seconds(10));
}

// Shards take as long as they take, however many there are.
TEST_F(StageStateTest, EachShardHasThePatienceOfOneTransfer) {
  for (const int shard : {0, 1}) PutRemote(shard);
  remote_.OnFetchShard([this] { clock_.Advance(absl::Seconds(15)); });
  remote_.AnswerFetches({absl::OkStatus(), absl::UnavailableError("away")});
  const auto stage = MakeStage(WholeModel());
  const absl::Status status = Load(*stage);
  ASSERT_TRUE(status.ok()) << status;
  ExpectLoaded(*stage);
}

TEST_F(StageStateTest, SaysThatItGoesOnAroundEachShard) {
  PutLocal(0);
  PutRemote(1);
  const auto stage = MakeStage(WholeModel());
  int before_fetch = 0;
  remote_.OnFetchShard([&] { before_fetch = goes_on_; });
  ASSERT_TRUE(Load(*stage).ok());
  EXPECT_EQ(before_fetch, 3);  // local, then what is not here
  EXPECT_EQ(goes_on_, 4);
}

TEST_F(StageStateTest, WhatWasFetchedIsNotFetchedAgain) {
  for (const int shard : {0, 1}) PutRemote(shard);
  remote_.AnswerFetches({absl::OkStatus(), absl::PermissionDeniedError("not now")});
  const auto stage = MakeStage(WholeModel());
  EXPECT_EQ(Load(*stage).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(remote_.shard_fetches(), 2);
  ASSERT_TRUE(Load(*stage).ok());
  ExpectLoaded(*stage);
  EXPECT_EQ(remote_.shard_fetches(), 3);
}

TEST_F(StageStateTest, AStageThatIsToldToLeaveAsksNoMore) {
  remote_.AnswerFetches(std::vector<absl::Status>(100, absl::UnavailableError("away")));
  remote_.OnFetchShard([this] { ended_ = absl::AbortedError("the run was stopped"); });
  const auto stage = MakeStage(WholeModel());
  EXPECT_EQ(Load(*stage), ended_);
  EXPECT_EQ(remote_.shard_fetches(), 1);
}

}  // namespace
}  // namespace longhaul::worker
