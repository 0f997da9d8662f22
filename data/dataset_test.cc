#include "data/dataset.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Three chunks, the last one short, no two alike.
std::string Content() {
  std::string content(2 * kChunkBytes + 1000, '\0');
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 2654435761u >> 13);
  }
  return content;
}

class DatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(source_path_, content_).ok());
    index_ = *IndexFile(source_path_);
  }

  absl::StatusOr<std::string> Chunk(uint64_t chunk) {
    fetched_.push_back(chunk);
    return content_.substr(chunk * kChunkBytes, kChunkBytes);
  }
  absl::Status Fill(DatasetStore& store) {
    return store.Fill(index_, [this](uint64_t chunk) { return Chunk(chunk); });
  }

  const TestFolder test_folder_{"dataset-test"};
  const std::string& folder_ = test_folder_.path();
  const std::string source_path_ = folder_ + "/source";
  const std::string store_path_ = folder_ + "/store";
  const std::string content_ = Content();
  DatasetIndex index_;
  std::vector<uint64_t> fetched_;
};

TEST_F(DatasetTest, IndexListsTheHashesOfPieces) {
  EXPECT_EQ(index_.bytes, content_.size());
  EXPECT_THAT(index_.chunk_sha256, ElementsAre(Sha256Hex(content_.substr(0, kChunkBytes)),
                                               Sha256Hex(content_.substr(kChunkBytes, kChunkBytes)),
                                               Sha256Hex(content_.substr(2 * kChunkBytes))));
  const auto back = DatasetIndex::FromJson(index_.ToJson());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->ToJson(), index_.ToJson());
  EXPECT_EQ(back->Id(), Sha256Hex(index_.ToJson()));
}

TEST_F(DatasetTest, IndexFileNamesWhatItCannotIndex) {
  EXPECT_EQ(IndexFile(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/empty", "").ok());
  EXPECT_THAT(IndexFile(folder_ + "/empty").status().message(), HasSubstr("empty is empty"));
  EXPECT_FALSE(IndexFile(folder_).ok());
}

TEST_F(DatasetTest, RefusesHostileIndexes) {
  const std::string good = index_.ToJson();
  const auto refuses = [&](absl::string_view from, absl::string_view to) {
    std::string bad = good;
    ASSERT_GT(absl::StrReplaceAll({{from, to}}, &bad), 0) << from;
    const auto index = DatasetIndex::FromJson(bad);
    EXPECT_EQ(index.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(index.status().message(), HasSubstr("data set index"));
  };
  const std::string bytes = absl::StrCat("\"bytes\":", content_.size());
  refuses(bytes, "\"bytes\":-1");
  refuses(bytes, "\"bytes\":0");
  refuses(bytes, "\"bytes\":1.5");
  refuses(bytes, "\"bytes\":18446744073709551615");
  refuses(bytes, "\"bytes\":1099511627776");
  refuses(bytes, "\"bytes\":1099511627777");
  refuses(bytes, absl::StrCat("\"bytes\":", 3 * kChunkBytes + 1));
  refuses(bytes, absl::StrCat("\"bytes\":", 2 * kChunkBytes));
  refuses(bytes, bytes + ",\"bytes\":1");
  refuses(bytes, bytes + ",\"more\":1");
  refuses("\"chunk_bytes\":1048576", "\"chunk_bytes\":1");
  refuses("\"schema\":1", "\"schema\":2");
  refuses(index_.chunk_sha256[1], std::string(64, 'A'));
  refuses(index_.chunk_sha256[1], "../../etc/passwd");
  refuses(absl::StrCat("\"", index_.chunk_sha256[1], "\""), "7");
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(DatasetIndex::FromJson(good.substr(0, length)).ok());
  }
}

TEST_F(DatasetTest, FillsServesAndKeeps) {
  const std::string id = index_.Id();
  DatasetStore store(store_path_);
  EXPECT_FALSE(store.Has(id));
  EXPECT_EQ(store.Index(id).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Fill(store).ok());
  EXPECT_THAT(fetched_, ElementsAre(0, 1, 2));
  EXPECT_TRUE(store.Has(id));
  EXPECT_EQ(*ReadFile(store.DataPath(id), content_.size()), content_);
  EXPECT_EQ(*store.ReadChunk(id, 2), content_.substr(2 * kChunkBytes));
  EXPECT_EQ(store.ReadChunk(id, 3).status().code(), absl::StatusCode::kOutOfRange);
  // A second call, and another process, find everything there.
  fetched_.clear();
  DatasetStore again(store_path_);
  ASSERT_TRUE(Fill(again).ok());
  EXPECT_TRUE(fetched_.empty());
  EXPECT_EQ(again.Index(id)->ToJson(), index_.ToJson());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(store_path_), {}), 2);
}

TEST_F(DatasetTest, BrokenDownloadGoesOnWhereItStopped) {
  const absl::Status broken =
      DatasetStore(store_path_).Fill(index_, [this](uint64_t chunk) -> absl::StatusOr<std::string> {
        if (chunk == 2) return absl::UnavailableError("the link is down");
        return Chunk(chunk);
      });
  EXPECT_EQ(broken.message(), "the link is down");
  DatasetStore store(store_path_);
  EXPECT_FALSE(store.Has(index_.Id()));
  // A chunk that rotted meanwhile is fetched again.
  std::string part = *ReadFile(store_path_ + "/" + index_.Id() + ".part", 1 << 30);
  part[5] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(store_path_ + "/" + index_.Id() + ".part", part + "rest").ok());
  fetched_.clear();
  ASSERT_TRUE(Fill(store).ok());
  EXPECT_THAT(fetched_, ElementsAre(0, 2));
  EXPECT_EQ(*ReadFile(store.DataPath(index_.Id()), content_.size()), content_);
}

TEST_F(DatasetTest, EndingBetweenDataAndIndexIsRepaired) {
  ASSERT_TRUE(MakeDirectories(store_path_).ok());
  DatasetStore store(store_path_);
  ASSERT_TRUE(WriteFileAtomically(store.DataPath(index_.Id()), content_).ok());
  EXPECT_FALSE(store.Has(index_.Id()));
  ASSERT_TRUE(Fill(store).ok());
  EXPECT_TRUE(fetched_.empty());
  EXPECT_TRUE(store.Has(index_.Id()));
}

TEST_F(DatasetTest, LyingSourcesAreRefused) {
  DatasetStore store(store_path_);
  const auto fill = [&](const std::string& bytes) {
    return store.Fill(index_, [&](uint64_t) -> absl::StatusOr<std::string> { return bytes; });
  };
  const absl::Status wrong = fill(std::string(kChunkBytes, 'x'));
  EXPECT_EQ(wrong.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(wrong.message(), HasSubstr("chunk 0 from its source does not have its hash"));
  EXPECT_THAT(fill("short").message(), HasSubstr("has 5 bytes instead of 1048576"));
  EXPECT_EQ(fill("").code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(store.Has(index_.Id()));
  DatasetIndex bad = index_;
  bad.bytes = 1;
  EXPECT_EQ(store.Fill(bad, [this](uint64_t chunk) { return Chunk(chunk); }).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetTest, DamageIsFoundWhenServing) {
  DatasetStore store(store_path_);
  ASSERT_TRUE(Fill(store).ok());
  const std::string id = index_.Id();
  std::string damaged = content_;
  damaged[kChunkBytes] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(store.DataPath(id), damaged).ok());
  EXPECT_TRUE(store.ReadChunk(id, 0).ok());
  EXPECT_EQ(store.ReadChunk(id, 1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(store.ReadChunk(id, 1).status().message(), HasSubstr(store.DataPath(id)));
  ASSERT_TRUE(WriteFileAtomically(store.DataPath(id), content_.substr(0, 10)).ok());
  EXPECT_EQ(store.ReadChunk(id, 0).status().code(), absl::StatusCode::kDataLoss);

  DatasetIndex other = index_;
  other.chunk_sha256[0] = std::string(64, '0');
  ASSERT_TRUE(WriteFileAtomically(store_path_ + "/" + id + ".json", other.ToJson()).ok());
  EXPECT_EQ(DatasetStore(store_path_).Index(id).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DatasetTest, WhatChangedOnTheDiskIsTakenAgain) {
  DatasetStore store(store_path_);
  ASSERT_TRUE(Fill(store).ok());
  const std::string path = store.DataPath(index_.Id());
  EXPECT_TRUE(store.Verify(index_.Id()).ok());
  std::string changed = content_;
  changed[kChunkBytes + 5] ^= 1;
  for (const std::string& damage : {changed, content_.substr(0, kChunkBytes + 9)}) {
    ASSERT_TRUE(WriteFileAtomically(path, damage).ok());
    EXPECT_EQ(store.Verify(index_.Id()).code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(store.Has(index_.Id()), damage.size() == content_.size());
    ASSERT_TRUE(Fill(store).ok());
    EXPECT_TRUE(store.Verify(index_.Id()).ok());
    EXPECT_EQ(*ReadFile(path, content_.size()), content_);
  }
}

// What cannot be sent as one message is refused before its bytes are read.
TEST_F(DatasetTest, ASetHasAtMostTheBytesThatAnIndexHasRoomFor) {
  DatasetIndex largest;
  largest.bytes = kDatasetBytesMax;
  largest.chunk_sha256.assign(kDatasetBytesMax / kChunkBytes, index_.chunk_sha256[0]);
  EXPECT_LE(largest.ToJson().size(), kIndexBytesMax);
  EXPECT_LE(kIndexBytesMax, uint64_t{8} << 20);
  std::filesystem::resize_file(source_path_, kDatasetBytesMax);  // without any bytes on the disk
  EXPECT_EQ(*DatasetBytes(source_path_), kDatasetBytesMax);
  std::filesystem::resize_file(source_path_, kDatasetBytesMax + 1);
  EXPECT_THAT(DatasetBytes(source_path_).status().message(), HasSubstr("120 GiB"));
  EXPECT_EQ(IndexFile(source_path_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetTest, IdsAreNeverPaths) {
  DatasetStore store(store_path_);
  for (const char* id : {"", "..", "../source", "/etc/passwd"}) {
    EXPECT_FALSE(store.Has(id));
    EXPECT_EQ(store.Index(id).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store.ReadChunk(id, 0).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(DatasetTest, FullDiskLeavesAResumableDownload) {
  DatasetStore store(store_path_);
  ASSERT_TRUE(MakeDirectories(store_path_).ok());
  // A file-size limit makes writing fail as a full disk would.
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{kChunkBytes + 10, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = Fill(store);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(status.message(), HasSubstr(".part"));
  EXPECT_FALSE(store.Has(index_.Id()));
  fetched_.clear();
  ASSERT_TRUE(Fill(store).ok());
  EXPECT_THAT(fetched_, ElementsAre(1, 2));
}

TEST_F(DatasetTest, OneThreadFillsASet) {
  DatasetStore store(store_path_);
  absl::Status second;
  const absl::Status first = store.Fill(index_, [&](uint64_t chunk) -> absl::StatusOr<std::string> {
    if (chunk == 0) std::thread([&] { second = Fill(store); }).join();
    return Chunk(chunk);
  });
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace longhaul::data
