#include "worker/host/kept_shards.h"

#include <chrono>
#include <filesystem>
#include <iterator>

#include "base/file.h"
#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeptShardsTest : public testing::Test {
 protected:
  absl::Status Put(const std::string& run, int64_t step, const std::string& bytes) {
    return kept_.Put(run, step, Sha256Hex(bytes), bytes);
  }
  bool Has(const std::string& bytes) { return store_.GetShard(Sha256Hex(bytes)).ok(); }

  TestFolder folder_;
  checkpoint::ShardStore store_{folder_.path()};
  std::vector<std::string> said_;
  const KeptShards::Say say_ = [this](const std::string& text) { said_.push_back(text); };
  KeptShards kept_{folder_.path(), store_, say_};
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
  KeptShards again(folder_.path(), store_, say_);
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

TEST_F(KeptShardsTest, ForgetsTheRunsThatWereTrainedLongestAgo) {
  const int runs = static_cast<int>(KeptShards::kRunsKept) + 3;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int run = 1; run <= runs; ++run) {
    // The clock of the files is coarse.
    for (int earlier = 1; earlier < run; ++earlier) {
      const std::string list = absl::StrCat(folder_.path(), "/kept/run-", earlier, ".json");
      if (!std::filesystem::exists(list)) continue;
      std::filesystem::last_write_time(list, now - std::chrono::hours(100 - earlier));
    }
    ASSERT_TRUE(Put(absl::StrCat("run-", run), 1, absl::StrCat("state of ", run)).ok());
  }
  for (int run = 1; run <= runs; ++run) {
    EXPECT_EQ(Has(absl::StrCat("state of ", run)), run > 3) << run;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/kept"), {}),
            KeptShards::kRunsKept);
}

TEST_F(KeptShardsTest, OfFetchedShardsThoseOfOneCheckpointStay) {
  ASSERT_TRUE(Put("r", 1, "state 1").ok());
  checkpoint::Manifest loaded;
  loaded.run = "r";
  const auto put = [&](const std::string& bytes) {
    return kept_.PutFetched(loaded, Sha256Hex(bytes), bytes);
  };
  loaded.shards.resize(2);
  loaded.shards[0].sha256 = Sha256Hex("part 1");
  loaded.shards[1].sha256 = Sha256Hex("part 2");
  ASSERT_TRUE(put("part 1").ok());
  ASSERT_TRUE(put("part 2").ok());
  EXPECT_TRUE(Has("part 1") && Has("part 2"));
  loaded.shards.resize(1);
  loaded.shards[0].sha256 = Sha256Hex("of another step");
  ASSERT_TRUE(put("of another step").ok());
  EXPECT_FALSE(Has("part 1") || Has("part 2"));
  EXPECT_TRUE(Has("of another step") && Has("state 1"));
  ASSERT_TRUE(Put("r", 2, "state 2").ok());
  EXPECT_FALSE(Has("of another step"));
}

TEST_F(KeptShardsTest, ADamagedListIsMovedAsideAndSaidOnce) {
  const std::string list = folder_.path() + "/kept/r.json";
  for (const char* damaged :
       {"", "[]", "{\"schema\":1}", "{\"schema\":1,\"shards\":[3]}",
        "{\"schema\":1,\"shards\":[{\"step\":1,\"sha256\":\"../../etc/passwd\"}]}"}) {
    ASSERT_TRUE(Put("r", 1, "state 1").ok());
    ASSERT_TRUE(WriteFileAtomically(list, damaged).ok());
    said_.clear();
    // Whichever run comes next finds it.
    for (const int step : {1, 2}) ASSERT_TRUE(Put("other", step, "other").ok()) << damaged;
    EXPECT_THAT(said_, ElementsAre(HasSubstr(list + ".damaged")));
    EXPECT_EQ(*ReadFile(list + ".damaged", 1 << 20), damaged);
    EXPECT_TRUE(Has("other"));
    // Pruning goes on.
    for (int step = 2; step <= 6; ++step) {
      ASSERT_TRUE(Put("r", step, absl::StrCat("state ", step)).ok());
    }
    EXPECT_FALSE(Has("state 2"));
    EXPECT_TRUE(Has("state 3"));
    std::filesystem::remove(list);
  }
}

}  // namespace
}  // namespace longhaul::worker
