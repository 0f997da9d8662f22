#include "coordinator/host/sqlite_journal.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "base/file.h"
#include "coordinator/host/database.h"
#include "coordinator/host/record_json.h"
#include "coordinator/host/testing/host_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using testing::HasSubstr;

class SqliteJournalTest : public testing::Test {
 protected:
  static RunRecord MakeRun(const std::string& name, const std::string& reason = "") {
    RunRecord run;
    run.spec = SmallRun(name);
    run.reason = reason;
    return run;
  }
  static checkpoint::Manifest MakeManifest(const Epoch& epoch, int64_t step) {
    checkpoint::Manifest manifest;
    manifest.run = "first";
    manifest.epoch = epoch;
    manifest.step = step;
    manifest.numeric_class = "class-a";
    manifest.shards = {{std::string(64, 'c'), 12, {"wte", "wpe"}}};
    return manifest;
  }
  std::string Why(const absl::Status& status) { return std::string(status.message()); }

  TestFolder folder_;
  const std::string path_ = folder_ / "journal.db";
};

TEST_F(SqliteJournalTest, KeepsTheNewestOfEachRecord) {
  {
    const auto journal = *OpenSqliteJournal(path_);
    NodeRecord node;
    node.facts.profile.name = "n1";
    const RunRecord old = MakeRun("first", "old");
    const RunRecord fresh = MakeRun("first", "fresh");
    const RunRecord other = MakeRun("other");
    ASSERT_TRUE(journal->Write({&node}, {&old}).ok());
    ASSERT_TRUE(journal->Write({}, {&fresh, &other}).ok());
  }
  const auto contents = (*OpenSqliteJournal(path_))->Load();
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->nodes.size(), 1u);
  ASSERT_EQ(contents->runs.size(), 2u);
  EXPECT_EQ(contents->runs[0].reason, "fresh");
  EXPECT_EQ(contents->runs[1].spec.name, "other");
}

// As from a copy of the file alone, or after the log beside it was lost in a crash.
TEST_F(SqliteJournalTest, TheFileWithoutItsLogLacksTheLastWritesOnly) {
  const auto journal = *OpenSqliteJournal(path_);
  const RunRecord first = MakeRun("first");
  ASSERT_TRUE(journal->Write({}, {&first}).ok());
  for (int i = 0; i < 32; ++i) {
    const RunRecord other = MakeRun("other", absl::StrCat("write ", i));
    ASSERT_TRUE(journal->Write({}, {&other}).ok());
  }
  const std::string copy = folder_ / "copy.db";
  std::filesystem::copy_file(path_, copy);
  const auto contents = (*OpenSqliteJournal(copy))->Load();
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->runs.size(), 2u);
  EXPECT_EQ(contents->runs[0].spec.name, "first");
}

TEST_F(SqliteJournalTest, KeepsTheManifestsThatARunNames) {
  RunRecord run = MakeRun("first");
  run.checkpoint = MakeManifest({1, 2}, 30);
  run.other_checkpoints = {{MakeManifest({1, 1}, 10), ""}, {MakeManifest({1, 1}, 20), "a shard"}};
  {
    const auto journal = *OpenSqliteJournal(path_);
    ASSERT_TRUE(journal->Write({}, {&run}).ok());
  }
  RunRecord back = (*OpenSqliteJournal(path_))->Load()->runs.at(0);
  EXPECT_EQ(back.checkpoint, run.checkpoint);
  EXPECT_EQ(back.other_checkpoints, run.other_checkpoints);
  // One is removed, and a step is committed anew by another epoch.
  run.other_checkpoints = {{MakeManifest({1, 2}, 20), ""}};
  {
    const auto journal = *OpenSqliteJournal(path_);
    ASSERT_TRUE(journal->Write({}, {&run}).ok());
    ASSERT_TRUE(journal->Write({}, {&run}).ok());
  }
  back = (*OpenSqliteJournal(path_))->Load()->runs.at(0);
  EXPECT_EQ(back.checkpoint, run.checkpoint);
  EXPECT_EQ(back.other_checkpoints, run.other_checkpoints);
  auto database = *Database::Open(path_, {"coordinator journal", 2, "", {""}});
  auto count = *database->Prepare("SELECT COUNT(*) FROM manifests");
  ASSERT_TRUE(*count.Next());
  EXPECT_EQ(count.Whole(0), 2);
}

TEST_F(SqliteJournalTest, TakesOverAJournalOfVersionOne) {
  {
    auto database = *Database::Open(
        path_, {"coordinator journal", 1,
                "CREATE TABLE nodes (name TEXT PRIMARY KEY, payload TEXT NOT NULL) WITHOUT ROWID;"
                "CREATE TABLE runs (name TEXT PRIMARY KEY, payload TEXT NOT NULL) WITHOUT ROWID;"});
    auto insert = *database->Prepare("INSERT INTO runs VALUES ('first', ?)");
    std::string json = RunToJson(MakeRun("first"));
    json.replace(json.find("\"schema\":2"), 10, "\"schema\":1");
    json.insert(1, "\"checkpoint\":" + checkpoint::ToJson(MakeManifest({1, 1}, 10)) + ",");
    insert.BindText(1, json);
    ASSERT_TRUE(insert.Run().ok());
  }
  for (int i = 0; i < 2; ++i) {
    const auto journal = *OpenSqliteJournal(path_);
    const auto contents = journal->Load();
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(contents->runs.at(0).checkpoint, MakeManifest({1, 1}, 10));
    ASSERT_TRUE(journal->Write({}, {&contents->runs[0]}).ok());
  }
}

TEST_F(SqliteJournalTest, AManifestThatIsGoneIsNamed) {
  RunRecord run = MakeRun("first");
  run.checkpoint = MakeManifest({1, 2}, 30);
  {
    const auto journal = *OpenSqliteJournal(path_);
    ASSERT_TRUE(journal->Write({}, {&run}).ok());
  }
  {
    auto database = *Database::Open(path_, {"coordinator journal", 2, "", {""}});
    ASSERT_TRUE(database->Execute("DELETE FROM manifests").ok());
  }
  const absl::Status status = (*OpenSqliteJournal(path_))->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Why(status), HasSubstr("manifests: first step 30 epoch 1.2: it is gone"));
}

TEST_F(SqliteJournalTest, DoesNotStoreWhatItCouldNotReadAgain) {
  const auto journal = *OpenSqliteJournal(path_);
  RunRecord run = MakeRun("first", "as it was");
  ASSERT_TRUE(journal->Write({}, {&run}).ok());
  PlanRequest request;
  request.nodes.resize(1);
  request.nodes[0].name = "n1";
  run.plan = *PlanOnAll(request);
  run.plan->step_seconds = std::numeric_limits<double>::infinity();
  const absl::Status status = journal->Write({}, {&run});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Why(status), HasSubstr("step_seconds"));
  EXPECT_EQ(journal->Load()->runs.at(0).reason, "as it was");
}

TEST_F(SqliteJournalTest, RefusesANewerSchemaNamingBoth) {
  OpenSqliteJournal(path_)->reset();
  {
    auto database = *Database::Open(path_, {"coordinator journal", 2, "", {""}});
    ASSERT_TRUE(database->Execute("UPDATE schema_version SET version = 7").ok());
  }
  const absl::Status status = OpenSqliteJournal(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Why(status), HasSubstr("version 7"));
  EXPECT_THAT(Why(status), HasSubstr("version 2"));
}

TEST_F(SqliteJournalTest, RefusesAnotherKindOfDatabase) {
  OpenSqliteMetrics(path_)->reset();
  EXPECT_THAT(Why(OpenSqliteJournal(path_).status()), HasSubstr("is a metrics record"));
}

TEST_F(SqliteJournalTest, NamesAFileThatIsNoDatabase) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(5000, 'x')).ok());
  const absl::Status status = OpenSqliteJournal(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Why(status), HasSubstr(path_));
}

TEST_F(SqliteJournalTest, NamesADamagedPageOrRecord) {
  {
    const auto journal = *OpenSqliteJournal(path_);
    const RunRecord run = MakeRun("first", std::string(100000, 'r'));
    ASSERT_TRUE(journal->Write({}, {&run}).ok());
  }
  std::string bytes = *ReadFile(path_, 1 << 24);
  std::string damaged = bytes;
  for (size_t i = 4096; i < damaged.size(); i += 64) damaged[i] = '\x5a';
  ASSERT_TRUE(WriteFileAtomically(path_, damaged).ok());
  const auto journal = OpenSqliteJournal(path_);
  const absl::Status status = journal.ok() ? (*journal)->Load().status() : journal.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(Why(status), HasSubstr("damaged"));

  std::filesystem::remove(path_);
  OpenSqliteJournal(path_)->reset();
  {
    auto database = *Database::Open(path_, {"coordinator journal", 2, "", {""}});
    ASSERT_TRUE(database->Execute("INSERT INTO runs VALUES ('first', '{\"schema\":3}')").ok());
  }
  const absl::Status record = (*OpenSqliteJournal(path_))->Load().status();
  EXPECT_EQ(record.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Why(record), HasSubstr("runs: first: "));
}

TEST_F(SqliteJournalTest, BelongsToOneOwner) {
  const auto journal = OpenSqliteJournal(path_);
  ASSERT_TRUE(journal.ok());
  const absl::Status second = OpenSqliteJournal(path_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Why(second), HasSubstr("another process"));
}

TEST_F(SqliteJournalTest, NamesAFolderThatIsNotThere) {
  EXPECT_THAT(Why(OpenSqliteJournal(folder_ / "none/journal.db").status()),
              HasSubstr("none/journal.db"));
}

TEST_F(SqliteJournalTest, AFullDatabaseIsNamed) {
  auto database = *Database::Open(path_, {"test", 1, "CREATE TABLE t (text TEXT)"});
  ASSERT_TRUE(database->Execute("PRAGMA max_page_count = 10").ok());
  const absl::Status full = database->Transact(
      [&] { return database->Execute("INSERT INTO t VALUES (hex(zeroblob(100000)))"); });
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(Why(full), HasSubstr("free some space"));
}

// A limit on the size of files stands in for a disk that takes no more.
TEST_F(SqliteJournalTest, AFailedWriteLosesNothingAndPasses) {
  const auto journal = *OpenSqliteJournal(path_);
  const RunRecord small = MakeRun("first", "small");
  ASSERT_TRUE(journal->Write({}, {&small}).ok());

  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 200000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const RunRecord huge = MakeRun("first", std::string(1000000, 'r'));
  const absl::Status full = journal->Write({}, {&huge});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);

  EXPECT_FALSE(full.ok());
  EXPECT_THAT(Why(full), HasSubstr(path_));
  EXPECT_EQ(journal->Load()->runs[0].reason, "small");
  ASSERT_TRUE(journal->Write({}, {&huge}).ok());
  EXPECT_EQ(journal->Load()->runs[0].reason, huge.reason);
}

}  // namespace
}  // namespace longhaul::coordinator
