#include "coordinator/host/checkpoints.h"

#include <string>
#include <vector>

#include "base/sha256.h"
#include "coordinator/host/testing/host_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

class CheckpointsTest : public testing::Test {
 protected:
  // Stores one shard with every parameter, of contents that differ by `step`.
  checkpoint::Manifest Upload(int64_t step) {
    checkpoint::Manifest manifest;
    manifest.run = "first";
    manifest.epoch = {1, 1};
    manifest.step = step;
    const std::string bytes = absl::StrCat("shard of step ", step);
    checkpoint::Shard& shard = manifest.shards.emplace_back();
    shard.sha256 = Sha256Hex(bytes);
    shard.bytes = bytes.size();
    const model::Graph graph = *model::BuildGraph(SmallRun().model);
    for (const model::Parameter& parameter : graph.parameters) {
      shard.parameters.push_back(parameter.name);
    }
    EXPECT_TRUE(checkpoints_.StoreShard(shard.sha256, bytes).ok());
    return manifest;
  }
  bool Has(const checkpoint::Manifest& manifest) {
    return store_.ShardBytes(manifest.shards[0].sha256).ok();
  }
  absl::Status Commit(const checkpoint::Manifest& manifest) {
    const absl::Status committed = checkpoints_.Commit(manifest, SmallRun());
    checkpoints_.Prune("first", 0);
    return committed;
  }

  TestFolder folder_;
  FakeClock clock_;
  checkpoint::ShardStore store_{folder_ / "checkpoints"};
  StoredCheckpoints checkpoints_{store_, clock_, [](bool, const std::string&) {}};
};

TEST_F(CheckpointsTest, RemovesThoseBeforeAStepWithTheirShards) {
  std::vector<checkpoint::Manifest> manifests;
  for (int64_t step = 1; step <= 4; ++step) {
    manifests.push_back(Upload(step));
    ASSERT_TRUE(Commit(manifests.back()).ok());
    EXPECT_TRUE(Has(manifests[0]));
  }
  checkpoints_.Prune("first", 3);
  EXPECT_FALSE(Has(manifests[0]));
  EXPECT_FALSE(Has(manifests[1]));
  EXPECT_TRUE(Has(manifests[2]));
  EXPECT_TRUE(Has(manifests[3]));
  std::vector<std::string> damaged;
  EXPECT_EQ(store_.Manifests("first", &damaged)->size(), 2u);
}

TEST_F(CheckpointsTest, AnUploadOnItsWayIsNotPruned) {
  const checkpoint::Manifest next = Upload(2);
  ASSERT_TRUE(Commit(Upload(1)).ok());
  EXPECT_TRUE(Has(next));
  EXPECT_TRUE(Commit(next).ok());
}

TEST_F(CheckpointsTest, AnUploadThatNobodyWantedIsRemovedAfterADay) {
  const checkpoint::Manifest stray = Upload(9);
  clock_.Advance(absl::Hours(25));
  ASSERT_TRUE(Commit(Upload(1)).ok());
  EXPECT_FALSE(Has(stray));
}

TEST_F(CheckpointsTest, ADroppedUploadIsRemovedAMinuteLater) {
  const checkpoint::Manifest skipped = Upload(1);
  const checkpoint::Manifest next = Upload(2);
  checkpoints_.Drop("first", {skipped.shards[0].sha256});
  EXPECT_TRUE(Has(skipped));
  clock_.Advance(absl::Seconds(61));
  checkpoints_.Drop("first", {});
  EXPECT_FALSE(Has(skipped));
  EXPECT_TRUE(Has(next));
}

TEST_F(CheckpointsTest, ADroppedUploadThatCameAgainOrWasCommittedStays) {
  const checkpoint::Manifest twin = Upload(1);
  checkpoints_.Drop("first", {twin.shards[0].sha256});
  Upload(1);
  const checkpoint::Manifest committed = Upload(2);
  ASSERT_TRUE(Commit(committed).ok());
  checkpoints_.Drop("first", {committed.shards[0].sha256});
  clock_.Advance(absl::Minutes(2));
  checkpoints_.Prune("first", 0);
  EXPECT_TRUE(Has(twin));
  EXPECT_TRUE(Has(committed));
}

TEST_F(CheckpointsTest, AnUploadOutlivesARestartOfTheCoordinator) {
  const checkpoint::Manifest next = Upload(2);
  ASSERT_TRUE(Commit(Upload(1)).ok());
  StoredCheckpoints restarted{store_, clock_, [](bool, const std::string&) {}};
  checkpoint::Manifest other = Upload(3);
  other.run = "second";
  ASSERT_TRUE(restarted.Commit(other, SmallRun("second")).ok());
  restarted.Prune("second", 0);
  EXPECT_TRUE(Has(next));
  EXPECT_TRUE(restarted.Commit(next, SmallRun()).ok());
}

TEST_F(CheckpointsTest, AStrayUploadOfAnEarlierProcessIsRemovedAfterADay) {
  const checkpoint::Manifest stray = Upload(9);
  StoredCheckpoints restarted{store_, clock_, [](bool, const std::string&) {}};
  clock_.Advance(absl::Hours(25));
  ASSERT_TRUE(restarted.Commit(Upload(1), SmallRun()).ok());
  restarted.Prune("first", 0);
  EXPECT_FALSE(Has(stray));
}

TEST_F(CheckpointsTest, RefusesAManifestThatMissesAParameterOrShard) {
  checkpoint::Manifest manifest = Upload(1);
  manifest.shards[0].parameters.pop_back();
  EXPECT_FALSE(Commit(manifest).ok());
  manifest = Upload(1);
  manifest.shards[0].sha256 = std::string(64, 'd');
  EXPECT_FALSE(Commit(manifest).ok());
}

}  // namespace
}  // namespace longhaul::coordinator
