// Every configuration file in deploy/ is accepted by the program as it is, except for where its
// secrets lie.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "daemon/rpc/test_certificates.h"
#include "daemon/test_process.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

class SamplesTest : public testing::Test {
 protected:
  SamplesTest() {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    for (const char* name : {"coordinator", "berlin-1"}) {
      const TlsFiles files = authority_.Issue(name, {name});
      std::filesystem::copy(files.certificate, absl::StrCat(folder_, "/", name, ".crt"));
      std::filesystem::copy(files.key, absl::StrCat(folder_, "/", name, ".key"));
    }
    std::filesystem::copy(authority_.folder() + "/ca.crt", folder_ + "/ca.crt");
    const std::string token = folder_ + "/cluster.token";
    EXPECT_TRUE(WriteFileAtomically(token, "0123456789abcdef0123456789abcdef\n").ok());
    EXPECT_EQ(chmod(token.c_str(), 0600), 0);
  }
  ~SamplesTest() override { std::filesystem::remove_all(folder_); }

  // Checks every file of deploy/FOLDER that is a daemon's configuration; how many there were.
  int Check(const std::string& deploy_folder) {
    int checked = 0;
    for (const auto& entry : std::filesystem::directory_iterator("deploy/" + deploy_folder)) {
      const std::string name = entry.path().filename();
      const bool coordinator = name == "coordinator.yaml";
      if (!coordinator && !absl::StartsWith(name, "worker")) continue;
      const std::string text = *ReadFile(entry.path(), 1 << 20);
      const std::string copy = absl::StrCat(folder_, "/", name);
      EXPECT_TRUE(
          WriteFileAtomically(copy, absl::StrReplaceAll(text, {{"/token/", folder_ + "/"}})).ok());
      std::string printed;
      EXPECT_EQ(RunLonghauld({coordinator ? "coordinator" : "worker", "--config", copy, "--check"},
                             folder_, printed),
                0)
          << name << ": " << printed;
      ++checked;
    }
    return checked;
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/samples_test_", getpid());
  TestAuthority authority_{"samples"};
};

TEST_F(SamplesTest, Config) { EXPECT_EQ(Check("config"), 2); }

TEST_F(SamplesTest, Compose) { EXPECT_EQ(Check("compose"), 5); }

}  // namespace
}  // namespace longhaul::daemon
