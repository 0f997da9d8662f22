#include "checkpoint/shard_store.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/testing/test_folder.h"
#include "checkpoint/shard.h"
#include "checkpoint/testing/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ShardStoreTest : public testing::Test {
 protected:
  // A shard of parameters [begin, end) with weights that depend on `version`, put into the store.
  Shard Put(int begin, int end, float version) {
    const auto weights = SmallWeights(true, version).parameters;
    std::vector<ParameterState> states;
    for (int i = begin; i < end; ++i) states.push_back({i, weights[i], weights[i], weights[i]});
    const EncodedShard encoded = EncodeShard(graph_, states);
    EXPECT_TRUE(store_.PutShard(encoded.shard.sha256, encoded.bytes).ok());
    return encoded.shard;
  }

  // A checkpoint of two shards, committed.
  Manifest Commit(const std::string& run, int64_t step, const Shard& first, const Shard& second) {
    Manifest manifest{run, {1, 1}, step, step * 10, "class", {first, second}};
    const absl::Status status = store_.Commit(manifest, graph_);
    EXPECT_TRUE(status.ok()) << status;
    return manifest;
  }
  Manifest Commit(const std::string& run, int64_t step) {
    return Commit(run, step, Put(0, 3, step), Put(3, parameters_, step));
  }

  std::vector<int64_t> Steps(const std::string& run) {
    std::vector<int64_t> steps;
    damaged_.clear();
    const auto manifests = store_.Manifests(run, &damaged_);
    EXPECT_TRUE(manifests.ok()) << manifests.status();
    if (manifests.ok()) {
      for (const Manifest& manifest : *manifests) steps.push_back(manifest.step);
    }
    return steps;
  }

  std::string ShardFile(const Shard& shard) { return folder_ + "/shards/" + shard.sha256; }
  void Overwrite(const std::string& path, absl::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  size_t FilesIn(const std::string& folder) {
    return std::distance(std::filesystem::directory_iterator(folder_ + "/" + folder), {});
  }

  const TestFolder test_folder_{"shard-store-test"};
  const std::string& folder_ = test_folder_.path();
  const model::Graph graph_ = SmallGraph();
  const int parameters_ = static_cast<int>(graph_.parameters.size());
  ShardStore store_{folder_};
  std::vector<std::string> damaged_;
};

TEST_F(ShardStoreTest, PutsAndGets) {
  const std::string sha256 = Sha256Hex("hello");
  EXPECT_FALSE(store_.ShardBytes(sha256).ok());
  EXPECT_EQ(store_.GetShard(sha256).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_.PutShard(sha256, "hello").ok());
  ASSERT_TRUE(store_.PutShard(sha256, "hello").ok());
  EXPECT_TRUE(store_.ShardBytes(sha256).ok());
  EXPECT_EQ(*store_.GetShard(sha256), "hello");
  EXPECT_EQ(store_.PutShard(sha256, "hullo").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FilesIn("shards"), 1u);
}

TEST_F(ShardStoreTest, NamesAreNeverPaths) {
  for (const char* name : {"", "..", "../../etc/passwd", "/etc/passwd"}) {
    EXPECT_FALSE(store_.ShardBytes(name).ok());
    EXPECT_EQ(store_.GetShard(name).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store_.PutShard(name, "x").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store_.Manifests(name, &damaged_).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store_.Prune(name, 1, {}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store_.Commit({name, {1, 1}, 1, 1, "", {}}, graph_).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ShardStoreTest, DamagedShardsAreFoundAndRepairedByPutting) {
  const Shard shard = Put(0, 3, 1);
  std::string bytes = *store_.GetShard(shard.sha256);
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 1;
  Overwrite(ShardFile(shard), damaged);
  const auto read = store_.GetShard(shard.sha256);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(read.status().message(), HasSubstr(ShardFile(shard)));
  Overwrite(ShardFile(shard), bytes.substr(1));
  EXPECT_EQ(store_.GetShard(shard.sha256).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(store_.PutShard(shard.sha256, bytes).ok());
  EXPECT_EQ(*store_.GetShard(shard.sha256), bytes);
}

TEST_F(ShardStoreTest, APipeInPlaceOfAShardIsDamageAndIsNotWaitedFor) {
  const std::string bytes = "bytes of a shard";
  const std::string name = Sha256Hex(bytes);
  ASSERT_TRUE(store_.PutShard(name, bytes).ok());
  const std::string path = folder_ + "/shards/" + name;
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(store_.GetShard(name).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store_.ShardBytes(name).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(store_.PutShard(name, bytes).ok());
  EXPECT_EQ(*store_.GetShard(name), bytes);
}

TEST_F(ShardStoreTest, CommitsAreReadBackInOrderOfSteps) {
  EXPECT_THAT(Steps("first"), IsEmpty());
  Commit("first", 10);
  const Manifest nine = Commit("first", 9);
  Commit("second", 5);
  EXPECT_THAT(Steps("first"), ElementsAre(9, 10));
  EXPECT_EQ(store_.Manifests("first", &damaged_)->front(), nine);
  EXPECT_THAT(Steps("second"), ElementsAre(5));
  EXPECT_THAT(*store_.Runs(), ElementsAre("first", "second"));
  EXPECT_THAT(damaged_, IsEmpty());
  ShardStore other(folder_);  // after a restart
  EXPECT_THAT(*other.Manifests("first", &damaged_), SizeIs(2));
}

TEST_F(ShardStoreTest, CommitRefusesWhatCannotBeLoaded) {
  const Shard first = Put(0, 3, 1), second = Put(3, parameters_, 1);
  const auto error = [&](std::vector<Shard> shards) {
    const absl::Status status =
        store_.Commit({"first", {1, 1}, 7, 70, "class", std::move(shards)}, graph_);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(error({first}), HasSubstr("is in no shard"));
  EXPECT_THAT(error({first, second, Put(2, 3, 2)}), HasSubstr("and again in shard"));
  Shard absent = second;
  absent.sha256 = std::string(64, '0');
  EXPECT_THAT(error({first, absent}), HasSubstr("shard 0000"));
  absent.sha256 = "../shards/x";
  EXPECT_THAT(error({first, absent}), HasSubstr("'sha256'"));
  Shard other_length = second;
  ++other_length.bytes;
  EXPECT_THAT(error({first, other_length}), HasSubstr("is not in"));
  std::filesystem::remove(ShardFile(second));
  EXPECT_THAT(error({first, second}), HasSubstr(second.sha256));
  EXPECT_THAT(Steps("first"), IsEmpty());
}

TEST_F(ShardStoreTest, OlderEpochsDoNotReplaceNewerOnes) {
  Manifest manifest = Commit("first", 7);
  manifest.epoch = {1, 2};
  EXPECT_TRUE(store_.Commit(manifest, graph_).ok());
  EXPECT_TRUE(store_.Commit(manifest, graph_).ok());
  manifest.epoch = {1, 1};
  const absl::Status status = store_.Commit(manifest, graph_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("epoch 1.2"));
  EXPECT_EQ(store_.Manifests("first", &damaged_)->front().epoch, (Epoch{1, 2}));
}

TEST_F(ShardStoreTest, DamagedManifestsAreReported) {
  Commit("first", 1);
  Commit("first", 2);
  const std::string runs = folder_ + "/manifests/first/";
  Overwrite(runs + "3.json", "{\"schema\":1");
  Overwrite(runs + "4.json", *ReadFile(runs + "2.json", 1 << 20));
  Overwrite(runs + "05.json", "not a name that is written here");
  Overwrite(runs + "6.json.tmp-1-2", "");
  EXPECT_THAT(Steps("first"), ElementsAre(1, 2));
  ASSERT_THAT(damaged_, SizeIs(2));
  EXPECT_THAT(damaged_[0], HasSubstr(runs + "3.json: "));
  EXPECT_THAT(damaged_[1], HasSubstr(runs + "4.json: is the manifest of run first at step 2"));
}

TEST_F(ShardStoreTest, PruneKeepsTheNewestAndWhatTheyShare) {
  const Shard shared = Put(0, 3, 0);
  std::vector<Shard> own;
  for (int64_t step = 1; step <= 4; ++step) {
    own.push_back(Put(3, parameters_, step));
    Commit("first", step, shared, own.back());
  }
  Commit("second", 1, shared, own[0]);
  const Shard uncommitted = Put(1, 2, 7), being_written = Put(1, 2, 8);
  Overwrite(ShardFile(shared) + ".tmp-1-2", "cut short");
  Overwrite(folder_ + "/shards/README", "not ours");
  ASSERT_TRUE(store_.Prune("first", 3, {being_written.sha256}).ok());
  EXPECT_THAT(Steps("first"), ElementsAre(3, 4));
  EXPECT_TRUE(store_.ShardBytes(shared.sha256).ok());
  EXPECT_TRUE(store_.ShardBytes(own[0].sha256).ok());  // the other run's
  EXPECT_FALSE(store_.ShardBytes(own[1].sha256).ok());
  EXPECT_TRUE(store_.ShardBytes(own[2].sha256).ok());
  EXPECT_TRUE(store_.ShardBytes(own[3].sha256).ok());
  EXPECT_FALSE(store_.ShardBytes(uncommitted.sha256).ok());
  EXPECT_TRUE(store_.ShardBytes(being_written.sha256).ok());
  EXPECT_FALSE(std::filesystem::exists(ShardFile(shared) + ".tmp-1-2"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/shards/README"));
  ASSERT_TRUE(store_.Prune("first", 3, {}).ok());
  EXPECT_FALSE(store_.ShardBytes(being_written.sha256).ok());
  EXPECT_TRUE(store_.Prune("never-seen", 1, {}).ok());
}

TEST_F(ShardStoreTest, ReadsAShardPieceByPiece) {
  const std::string bytes = "seven bytes and more";
  const std::string sha256 = Sha256Hex(bytes);
  std::string got;
  const auto take = [&got](absl::string_view piece) {
    EXPECT_LE(piece.size(), 7u);
    absl::StrAppend(&got, piece);
    return absl::OkStatus();
  };
  EXPECT_EQ(store_.ReadShard(sha256, 7, take).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_.ReadShard("../x", 7, take).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_.PutShard(sha256, bytes).ok());
  ASSERT_TRUE(store_.ReadShard(sha256, 7, take).ok());
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(store_.ReadShard(sha256, 7, [](absl::string_view) { return absl::AbortedError("x"); }),
            absl::AbortedError("x"));
  Overwrite(folder_ + "/shards/" + sha256, "seven bytes and less");
  const absl::Status damaged = store_.ReadShard(sha256, 7, take);
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(damaged.message(), HasSubstr(folder_ + "/shards/" + sha256));
  std::filesystem::remove(folder_ + "/shards/" + sha256);
  std::filesystem::create_directory(folder_ + "/shards/" + sha256);
  EXPECT_EQ(store_.ReadShard(sha256, 7, take).code(), absl::StatusCode::kDataLoss);
}

TEST_F(ShardStoreTest, PruneLosesNothingWhileAManifestIsDamaged) {
  const Manifest one = Commit("first", 1);
  Commit("second", 1);
  const std::string path = folder_ + "/manifests/first/1.json";
  const std::string good = *ReadFile(path, 1 << 20);
  Overwrite(path, "{");
  const absl::Status status = store_.Prune("second", 1, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(path));
  for (const Shard& shard : one.shards) EXPECT_TRUE(store_.ShardBytes(shard.sha256).ok());
  Overwrite(path, good);  // repaired
  EXPECT_TRUE(store_.Prune("second", 1, {}).ok());
  EXPECT_THAT(Steps("first"), ElementsAre(1));
  // One that is older than what is kept goes with the others.
  Overwrite(path, "{");
  Commit("first", 2);
  Commit("first", 3);
  EXPECT_TRUE(store_.Prune("first", 3, {}).ok());
  EXPECT_EQ(FilesIn("manifests/first"), 1u);
  EXPECT_EQ(FilesIn("shards"), 4u);
}

TEST_F(ShardStoreTest, FullDiskDuringACheckpointKeepsTheLastOne) {
  const Manifest last = Commit("first", 1);
  // A file-size limit makes writing fail as a full disk would.
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string bytes(4096, 'x');
  const absl::Status put = store_.PutShard(Sha256Hex(bytes), bytes);
  Manifest next = last;
  next.step = 2;
  const absl::Status commit = store_.Commit(next, graph_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(put.message(), HasSubstr(folder_ + "/shards/"));
  EXPECT_FALSE(commit.ok());
  EXPECT_FALSE(store_.ShardBytes(Sha256Hex(bytes)).ok());
  EXPECT_THAT(Steps("first"), ElementsAre(1));
  EXPECT_EQ(FilesIn("shards"), 2u);
  EXPECT_EQ(FilesIn("manifests/first"), 1u);
  for (const Shard& shard : last.shards) EXPECT_TRUE(store_.GetShard(shard.sha256).ok());
}

}  // namespace
}  // namespace longhaul::checkpoint
