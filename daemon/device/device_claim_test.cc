#include "daemon/device/device_claim.h"

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DeviceClaimTest : public testing::Test {
 protected:
  absl::StatusOr<DeviceClaim> Take(bool shared) {
    return DeviceClaim::Take("cuda:0", uuid_, shared);
  }
  std::string Refusal(bool shared) {
    const auto claim = Take(shared);
    EXPECT_EQ(claim.status().code(), absl::StatusCode::kFailedPrecondition) << claim.status();
    return std::string(claim.status().message());
  }
  // Of this process's own, as others may run this test too.
  const std::string uuid_ = absl::StrCat("GPU-test-", getpid());
};

TEST_F(DeviceClaimTest, OneWorkerADevice) {
  std::optional<DeviceClaim> claim = *Take(false);
  const std::string process = absl::StrCat("process ", getpid());
  for (const bool shared : {false, true}) {
    EXPECT_THAT(Refusal(shared),
                AllOf(HasSubstr("cuda:0 (" + uuid_ + ") is used by " + process),
                      HasSubstr("daemon_test"), HasSubstr("`share_device: true` in both")));
  }
  EXPECT_TRUE(DeviceClaim::Take("cuda:1", uuid_ + "-1", false).ok()) << "another device";
  claim.reset();
  EXPECT_TRUE(Take(false).ok()) << "free again, and the refused took nothing";
}

TEST_F(DeviceClaimTest, SharersBearEachOtherOnly) {
  std::vector<DeviceClaim> claims;
  for (int sharer = 0; sharer < kSharersMax; ++sharer) {
    auto claim = Take(true);
    ASSERT_TRUE(claim.ok()) << claim.status();
    claims.push_back(*std::move(claim));
  }
  EXPECT_THAT(Refusal(true), HasSubstr("is used by process")) << "no place is left";
  claims.erase(claims.begin(), claims.end() - 1);
  EXPECT_THAT(Refusal(false), HasSubstr("is used by process")) << "the last sharer is enough";
  EXPECT_TRUE(Take(true).ok());
  claims.clear();
  EXPECT_TRUE(Take(false).ok());
}

TEST_F(DeviceClaimTest, EndsWithTheProcessHoweverThatEnds) {
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = Take(false);
    raise(claim.ok() ? SIGKILL : SIGUSR1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);
  EXPECT_TRUE(Take(false).ok());
}

TEST_F(DeviceClaimTest, ManyRefusalsAreAllToldWhoHasIt) {
  const auto claim = Take(false);
  ASSERT_TRUE(claim.ok());
  for (int ask = 0; ask < 100; ++ask) EXPECT_THAT(Refusal(false), HasSubstr("process "));
  for (int ask = 0; ask < 100; ++ask) Refusal(false);
}

}  // namespace
}  // namespace longhaul::daemon
