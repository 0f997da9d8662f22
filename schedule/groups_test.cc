#include "schedule/groups.h"

#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/testing/parse_program.h"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Shape kShape{3, 4, true, {2, 1, 3}, {{0, 1, 1, 0}, {0, 0, 0, 0}, {2, 0, 1, 2}}};

TEST(Groups, AreNumberedStageByStage) {
  const Groups groups(kShape);
  EXPECT_EQ(groups.count(), 6);
  EXPECT_EQ(groups.stages(), 3);
  EXPECT_EQ(groups.stage(4), 2);
  EXPECT_EQ(groups.replica(4), 1);
  EXPECT_EQ(groups.GroupOf(2, 1), 4);
  EXPECT_EQ(groups.Leader(1), 2);
  EXPECT_EQ(groups.Owner(2, 0), 5);
  EXPECT_THAT(groups.MicroBatches(1), ElementsAre(1, 2));
  EXPECT_THAT(groups.MicroBatches(5), ElementsAre(0, 3));
  EXPECT_EQ(groups.Name(2), "stage 1");
  EXPECT_EQ(groups.Name(4), "stage 2 replica 1");
}

TEST(Groups, FramesGoToTheOwnerAndOnceAStepToTheLeader) {
  const Groups groups(kShape);
  using enum InstructionKind;
  EXPECT_EQ(groups.Peer({.kind = kSendActivation, .stage = 1, .micro_batch = 2}), 4);
  EXPECT_EQ(groups.Peer({.kind = kRecvActivation, .stage = 1, .micro_batch = 2}), 1);
  EXPECT_EQ(groups.Peer({.kind = kSendTiedGradient, .stage = 2}), 0);
  EXPECT_EQ(groups.Peer({.kind = kSendVerdict, .stage = 1}), 3);
}

TEST(Groups, OneReplicaEachNeedsNoOwners) {
  const Groups groups({.stages = 3, .micro_batches = 2});
  EXPECT_EQ(groups.count(), 3);
  EXPECT_EQ(groups.Owner(1, 1), 1);
  EXPECT_THAT(groups.MicroBatches(2), ElementsAre(0, 1));
}

TEST(CheckShape, NamesWhatContradictsItself) {
  const auto why = [](const Shape& shape) {
    const absl::Status status = CheckShape(shape);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(CheckShape(kShape), absl::OkStatus());
  EXPECT_THAT(why({2, 2, false, {1, 1}, {{0, 0}}}), HasSubstr("owners of 1"));
  EXPECT_THAT(why({1, 2, false, {2}, {}}), HasSubstr("owners of 0"));
  EXPECT_THAT(why({1, 2, false, {0}, {{0, 0}}}), HasSubstr("stage 0 of a shape has 0 replicas"));
  EXPECT_THAT(why({1, 2, false, {-1}, {{0, 0}}}), HasSubstr("has -1 replicas"));
  EXPECT_THAT(why({1, 2, false, {2}, {{0, 2}}}), HasSubstr("2 replicas, and an owner 2"));
  EXPECT_THAT(why({1, 2, false, {2}, {{0, -1}}}), HasSubstr("an owner -1"));
  EXPECT_THAT(why({1, 2, false, {2}, {{0}}}), HasSubstr("owners of 1 of 2 micro-batches"));
  EXPECT_THAT(why({1, 2, false, {2}, {{0, 0}}}), HasSubstr("stage 0 replica 1 of a shape has no"));
  EXPECT_EQ(CheckShape({1, 2, false, {2}, {{0, 0}}}, /*may_idle=*/true), absl::OkStatus());
}

TEST(ShapeOf, IsWhatTheProgramsWereMadeFrom) {
  for (const std::string& schedule : ScheduleNames()) {
    const auto programs = Generate(schedule, kShape);
    ASSERT_TRUE(programs.ok()) << programs.status();
    const auto shape = ShapeOf(*programs);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->stages, kShape.stages);
    EXPECT_EQ(shape->micro_batches, kShape.micro_batches);
    EXPECT_EQ(shape->tied, kShape.tied);
    EXPECT_EQ(shape->replicas, kShape.replicas);
    EXPECT_EQ(shape->owners, kShape.owners);
  }
}

TEST(ShapeOf, RefusesWhatIsNoShape) {
  const auto refused = [](const std::vector<std::string>& texts) {
    std::vector<Program> programs;
    for (const std::string& text : texts) programs.push_back(*ParseProgram(text));
    return ShapeOf(programs).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({"stage 1 slots 1: F0"}));
  EXPECT_TRUE(refused({"stage 0 replica 1 slots 1: F0"}));
  EXPECT_TRUE(refused({"stage 0 slots 1: F0", "stage 0 slots 1: F1"}));
  EXPECT_TRUE(refused({"stage 0 slots 1: F0 F0"}));
  EXPECT_TRUE(refused({"stage 0 slots 1: F1"}));
  EXPECT_TRUE(refused({"stage 0 slots 1: F2147483647"}));
  EXPECT_TRUE(refused({"stage 0 slots 1: F0 F1", "stage 1 slots 1: F0"}));
}

TEST(SpreadOwners, NoPrefixIsFarFromItsShares) {
  for (const std::vector<int>& shares : std::vector<std::vector<int>>{
           {1}, {4, 4}, {3, 1}, {5, 3, 2}, {1, 7}, {2, 0, 6}, {13, 5, 1, 1}}) {
    const int all = std::accumulate(shares.begin(), shares.end(), 0);
    const std::vector<int> owners = SpreadOwners(shares);
    ASSERT_EQ(owners.size(), static_cast<size_t>(all));
    std::vector<int> taken(shares.size(), 0);
    for (int m = 0; m < all; ++m) {
      ++taken[owners[m]];
      for (size_t r = 0; r < shares.size(); ++r) {
        EXPECT_LE(std::abs(taken[r] - (m + 1.0) * shares[r] / all), 1.5);
      }
    }
    EXPECT_EQ(taken, shares);
  }
  EXPECT_THAT(SpreadOwners({3, 3}), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(BlockOwners({3, 1, 2}), ElementsAre(0, 0, 0, 1, 2, 2));
}

TEST(SlotMap, GoesByThePositionAmongTheGroupsOwn) {
  const SlotMap slots(*ParseProgram("stage 0 slots 2: F1 F4 B1 F9 B4 B9"));
  EXPECT_EQ(slots.Of(1), 0);
  EXPECT_EQ(slots.Of(4), 1);
  EXPECT_EQ(slots.Of(9), 0);
}

}  // namespace
}  // namespace longhaul::schedule
