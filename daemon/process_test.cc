#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "daemon/test_notify_socket.h"
#include "daemon/test_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    Write("token", "0123456789abcdef0123456789abcdef\n");
    EXPECT_EQ(chmod((folder_ + "/token").c_str(), 0600), 0);
  }
  ~ProcessTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }
  std::string Output() { return ReadFile(folder_ + "/output", 1 << 20).value_or(""); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/process_test_", getpid());
};

TEST_F(ProcessTest, ACoordinatorIsReadyReloadsAndStops) {
  const std::string config = Write(
      "c.yaml", "listen: 127.0.0.1:0\nfolder: state\ncluster_token_file: token\nlease: 10s\n");
  NotifySocket manager(folder_ + "/notify");
  TestProcess daemon({"coordinator", "--config", config}, folder_ + "/output", manager.path());
  EXPECT_THAT(manager.WaitFor("READY=1"), HasSubstr("listening on 127.0.0.1:"));
  Write("c.yaml", "listen: 127.0.0.1:0\nfolder: state\ncluster_token_file: token\nlease: 20s\n");
  daemon.Signal(SIGHUP);
  EXPECT_NE(manager.WaitFor("RELOADING=1"), "");
  EXPECT_NE(manager.WaitFor("READY=1"), "");
  EXPECT_THAT(Output(), HasSubstr("needs a restart to take effect keys=lease"));
  // The journal holds the data plane's tokens.
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/state")) {
    const auto mode = entry.status().permissions();
    EXPECT_EQ(mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
              std::filesystem::perms::none)
        << entry.path();
    files += entry.path().extension() == ".db" || entry.path().extension() == ".db-wal" ? 1 : 0;
  }
  EXPECT_GE(files, 3);
  std::string printed;
  EXPECT_EQ(RunLonghauld({"coordinator", "--config", config}, folder_ + "/state", printed), 1);
  EXPECT_THAT(printed, HasSubstr("in use by another longhauld (process "));
  daemon.Signal(SIGTERM);
  EXPECT_NE(manager.WaitFor("STOPPING=1"), "");
  EXPECT_EQ(daemon.Wait(), 0);
  EXPECT_THAT(Output(), HasSubstr("info stopped"));
}

TEST_F(ProcessTest, AWorkerIsReadyWithoutACoordinatorAndSaysSo) {
  const std::string config =
      Write("w.yaml",
            "name: b1\nsite: berlin\ncoordinator: 127.0.0.1:1\nfolder: state\nthreads: 1\n"
            "cluster_token_file: token\n");
  for (const char* incarnation : {"1", "2"}) {
    NotifySocket manager(folder_ + "/notify");
    TestProcess daemon({"worker", "--config", config}, folder_ + "/output", manager.path());
    EXPECT_THAT(manager.WaitFor("READY=1"), HasSubstr("not part of the cluster"));
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0);
    EXPECT_THAT(*ReadFile(folder_ + "/state/identity.json", 4096),
                HasSubstr(absl::StrCat("\"incarnation\": ", incarnation)));
  }
}

TEST_F(ProcessTest, BadUsageAndBadConfigurationEndWithTwo) {
  std::string printed;
  EXPECT_EQ(RunLonghauld({}, folder_, printed), 2);
  EXPECT_EQ(RunLonghauld({"cordinator"}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("the nearest is 'coordinator'"));
  EXPECT_EQ(RunLonghauld({"frobnicate"}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("unknown command 'frobnicate' of longhauld; longhauld --help"));
  EXPECT_EQ(RunLonghauld({"worker"}, folder_, printed), 2);
  EXPECT_EQ(RunLonghauld({"worker", "--config", folder_ + "/absent.yaml"}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("absent.yaml"));
  const std::string config = Write("w.yaml", "folder: x\nsiet: a\n");
  EXPECT_EQ(RunLonghauld({"worker", "--config", config}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("w.yaml:2"));
  EXPECT_THAT(printed, HasSubstr("did you mean 'site'?"));
  const std::string secret = Write("s.yaml", "site: a\nfolder: x\ncluster_token_file: absent\n");
  EXPECT_EQ(RunLonghauld({"worker", "--config", secret, "--check"}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("s.yaml:3: 'cluster_token_file': cannot open"));
  const std::string tls =
      Write("t.yaml", "site: a\nfolder: x\ntls:\n  certificate: a\n  key: b\n  ca: absent.crt\n");
  EXPECT_EQ(RunLonghauld({"worker", "--config", tls, "--check"}, folder_, printed), 2);
  EXPECT_THAT(printed, HasSubstr("t.yaml:3: 'tls': CA: cannot open"));
  EXPECT_EQ(RunLonghauld({"--version"}, folder_, printed), 0);
  EXPECT_THAT(printed, testing::StartsWith("longhauld "));
  for (const char* word : {"--version", "--help"}) {
    EXPECT_EQ(TestProcess({word}, "/dev/full", "").Wait(), 1) << word;
  }
}

}  // namespace
}  // namespace longhaul::daemon
