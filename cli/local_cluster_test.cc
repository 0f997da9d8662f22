#include "cli/local_cluster.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "cli/local_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LocalClusterTest : public testing::Test {
 protected:
  void WriteCluster(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/cluster.json", text).ok());
  }

  const TestFolder test_folder_{"local-cluster-test"};
  const std::string& folder_ = test_folder_.path();
};

std::string WithProcess(const std::string& process) {
  return absl::StrCat(R"({"schema":1,"coordinator":"127.0.0.1:7","processes":[)", process, "]}");
}

TEST_F(LocalClusterTest, NoFileIsNoCluster) {
  const auto cluster = ReadLocalCluster(folder_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_FALSE(cluster->has_value());
}

TEST_F(LocalClusterTest, ReadsWhatRuns) {
  WriteCluster(WithProcess(R"({"name":"worker-1","pid":4000000,"start_ticks":12})"));
  const auto cluster = ReadLocalCluster(folder_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->coordinator, "127.0.0.1:7");
  ASSERT_EQ((*cluster)->processes.size(), 1u);
  EXPECT_EQ((*cluster)->processes[0].name, "worker-1");
  EXPECT_EQ((*cluster)->processes[0].pid, 4000000);
  EXPECT_EQ((*cluster)->processes[0].start_ticks, 12u);
}

// A process id of 0 or less would make kill(2) end a group, or everything.
TEST_F(LocalClusterTest, RefusesAHostileFileByName) {
  for (const std::string& text : std::vector<std::string>{
           "", "null", "[]", "{", R"({"schema":2,"coordinator":"x","processes":[]})",
           R"({"schema":1,"processes":[]})", R"({"schema":1,"coordinator":7,"processes":[]})",
           R"({"schema":1,"coordinator":"x","processes":{}})", WithProcess("3"),
           WithProcess("null"), WithProcess("{}"),
           WithProcess(R"({"name":"w","pid":0,"start_ticks":1})"),
           WithProcess(R"({"name":"w","pid":-1,"start_ticks":1})"),
           WithProcess(R"({"name":"w","pid":4294967297,"start_ticks":1})"),
           WithProcess(R"({"name":"w","pid":1.5,"start_ticks":1})"),
           WithProcess(R"({"name":"w","pid":"1","start_ticks":1})"),
           WithProcess(R"({"name":"w","pid":1,"start_ticks":-1})"),
           WithProcess(R"({"name":["w"],"pid":1,"start_ticks":1})"), std::string(5000, '[')}) {
    WriteCluster(text);
    const auto cluster = ReadLocalCluster(folder_);
    EXPECT_FALSE(cluster.ok()) << text.substr(0, 100);
    EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("cluster.json"));
  }
}

// The ids of an old file may be those of strangers by now.
TEST_F(LocalClusterTest, StoppingDoesNotTouchAProcessThatStartedAtAnotherTime) {
  const uint64_t ticks = *StartTicks(::getpid());
  WriteCluster(WithProcess(absl::StrCat(R"({"name":"worker-1","pid":)", ::getpid(),
                                        R"(,"start_ticks":)", ticks + 1, "}")));
  const LocalCluster cluster = **ReadLocalCluster(folder_);
  EXPECT_TRUE(Alive(cluster.processes).empty());
  EXPECT_TRUE(StopLocalCluster(cluster, absl::Seconds(1), [] {}).ok());
}

TEST_F(LocalClusterTest, IsNotStartedTwice) {
  WriteCluster(WithProcess(absl::StrCat(R"({"name":"worker-1","pid":)", ::getpid(),
                                        R"(,"start_ticks":)", *StartTicks(::getpid()), "}")));
  LocalClusterOptions options;
  options.dir = folder_;
  const auto started = StartLocalCluster(options);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("longhaul down"));
}

TEST_F(LocalClusterTest, OneThatIsHalfDeadIsNamedWithTheRemedy) {
  WriteCluster(WithProcess(absl::StrCat(
      R"({"name":"coordinator","pid":4000000,"start_ticks":12},{"name":"worker-1","pid":)",
      ::getpid(), R"(,"start_ticks":)", *StartTicks(::getpid()), "}")));
  LocalClusterOptions options;
  options.dir = folder_;
  const auto started = StartLocalCluster(options);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(started.status().message()),
              AllOf(HasSubstr("only worker-1 still runs"), HasSubstr("coordinator is dead"),
                    HasSubstr("coordinator/log"), HasSubstr("longhaul down --dir"),
                    HasSubstr("longhaul up --dir")));
}

TEST(LocalProcess, ADaemonIsKnownByItsStart) {
  const auto ticks = StartTicks(::getpid());
  ASSERT_TRUE(ticks.ok()) << ticks.status();
  EXPECT_GT(*ticks, 0u);
  EXPECT_EQ(*StartTicks(::getpid()), *ticks);
  EXPECT_TRUE(IsAlive({"self", ::getpid(), *ticks}));
  EXPECT_FALSE(IsAlive({"self", ::getpid(), *ticks - 1}));
  EXPECT_GE(*ticks, *StartTicks(1));
}

TEST(LocalProcess, NobodyHasAnImpossibleId) {
  for (const pid_t pid : {0, -1, 2147483647}) {
    EXPECT_EQ(StartTicks(pid).status().code(), absl::StatusCode::kNotFound) << pid;
    EXPECT_FALSE(IsAlive({"none", pid, 0}));
  }
}

TEST(LocalProcess, WhatCannotBeRunIsNamed) {
  const auto pid = Spawn({"/no/such/program"}, "/dev/null", /*die_with_parent=*/true);
  EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(pid.status().message()), HasSubstr("/no/such/program"));
}

TEST(LocalProcess, TheProgramsFolderIsThisTests) {
  const auto folder = ProgramFolder();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(std::filesystem::exists(*folder + "/cli_test"));
}

}  // namespace
}  // namespace longhaul::cli
