#include "worker/host/kept_shards.h"

#include "base/file.h"
#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

class KeptShardsTest : public testing::Test {
 protected:
  absl::Status Put(const std::string& run, int64_t step, const std::string& bytes) {
    return kept_.Put(run, step, Sha256Hex(bytes), bytes);
  }
  bool Has(const std::string& bytes) { return store_.GetShard(Sha256Hex(bytes)).ok(); }

  TestFolder folder_;
  checkpoint::ShardStore store_{folder_.path()};
  KeptShards kept_{folder_.path(), store_};
};

TEST_F(KeptShardsTest, KeepsTheNewestOfEachRun) {
  ASSERT_TRUE(Put("other", 1, "other 1").ok());
  for (int step = 1; step <= 9; ++step) {
    ASSERT_TRUE(Put("r", step, absl::StrCat("state ", step)).ok());
  }
  for (int step = 1; step <= 9; ++step) {
    EXPECT_EQ(Has(absl::StrCat("state ", step)), step > 5) << step;
  }
  EXPECT_TRUE(Has("other 1"));
}

TEST_F(KeptShardsTest, KnowsThemAfterARestart) {
  for (int step = 1; step <= 4; ++step) {
    ASSERT_TRUE(Put("r", step, absl::StrCat("state ", step)).ok());
  }
  KeptShards again(folder_.path(), store_);
  ASSERT_TRUE(again.Put("r", 5, Sha256Hex("state 5"), "state 5").ok());
  EXPECT_FALSE(Has("state 1"));
  EXPECT_TRUE(Has("state 2"));
}

TEST_F(KeptShardsTest, ARecoveryReplacesLaterSteps) {
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(Put("r", step, absl::StrCat("state ", step)).ok());
  }
  ASSERT_TRUE(Put("r", 2, "state 2 of another partition").ok());
  EXPECT_TRUE(Has("state 1"));
  EXPECT_FALSE(Has("state 2"));
  EXPECT_FALSE(Has("state 3"));
  EXPECT_TRUE(Has("state 2 of another partition"));
}

// Without its list nobody knows what may go: all stays, and the file is named.
TEST_F(KeptShardsTest, ADamagedListIsNamedAndNothingIsLost) {
  ASSERT_TRUE(Put("r", 1, "state 1").ok());
  const std::string list = folder_.path() + "/kept/r.json";
  for (const char* damaged :
       {"", "[]", "{\"schema\":1}", "{\"schema\":1,\"shards\":[3]}",
        "{\"schema\":1,\"shards\":[{\"step\":1,\"sha256\":\"../../etc/passwd\"}]}"}) {
    ASSERT_TRUE(WriteFileAtomically(list, damaged).ok());
    const absl::Status status = Put("r", 2, "state 2");
    EXPECT_FALSE(status.ok()) << damaged;
    EXPECT_THAT(std::string(status.message()), HasSubstr(list));
    EXPECT_TRUE(Has("state 1"));
    EXPECT_TRUE(Has("state 2"));
  }
}

}  // namespace
}  // namespace longhaul::worker
