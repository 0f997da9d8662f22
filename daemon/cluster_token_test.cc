#include "daemon/cluster_token.h"

#include <sys/stat.h>

#include <string>

#include "base/file.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

class ClusterToken : public testing::Test {
 protected:
  std::string TokenFile(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  const TestFolder folder_{"cluster-token-test"};
};

TEST_F(ClusterToken, IsReadWithoutItsLineEnd) {
  const auto token = ReadClusterToken(TokenFile("good", "0123456789abcdef0123\n", 0600));
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(*token, "0123456789abcdef0123");
  EXPECT_TRUE(ReadClusterToken(TokenFile("readonly", "0123456789abcdef", 0400)).ok());
}

TEST_F(ClusterToken, RefusesWhatOthersMayReadAndWhatIsNoToken) {
  const std::string open = TokenFile("open", "0123456789abcdef", 0640);
  const auto refused = ReadClusterToken(open).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("chmod 0600 '" + open));
  EXPECT_THAT(std::string(refused.message()), testing::Not(HasSubstr("0123456789abcdef")));
  EXPECT_FALSE(ReadClusterToken(TokenFile("short", "0123456789abcde", 0600)).ok());
  EXPECT_FALSE(ReadClusterToken(TokenFile("empty", "", 0600)).ok());
  EXPECT_FALSE(ReadClusterToken(TokenFile("spaces", "0123456789 abcdef", 0600)).ok());
  EXPECT_FALSE(ReadClusterToken(TokenFile("long", std::string(1025, 'a'), 0600)).ok());
  EXPECT_EQ(ReadClusterToken("/nonexistent/token").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace longhaul::daemon
