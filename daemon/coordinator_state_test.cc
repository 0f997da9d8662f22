#include "daemon/coordinator_state.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

class CoordinatorStateTest : public testing::Test {
 protected:
  CoordinatorStateTest() : folder_(absl::StrCat(testing::TempDir(), "/self_test_", getpid())) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
  }
  ~CoordinatorStateTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_;
};

TEST_F(CoordinatorStateTest, TheTermRisesExactlyWhenTheJournalIsLost) {
  const std::string journal = folder_ + "/journal.db";
  const auto first = TakeCoordinatorSelf(folder_, journal);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->term, 1u);
  EXPECT_EQ(first->token_secret.size(), 64u);
  ASSERT_TRUE(WriteFileAtomically(journal, "x").ok());
  const auto second = TakeCoordinatorSelf(folder_, journal);
  EXPECT_EQ(second->term, 1u);
  EXPECT_EQ(second->token_secret, first->token_secret);
  std::filesystem::remove(journal);
  EXPECT_EQ(TakeCoordinatorSelf(folder_, journal)->term, 2u);
  ASSERT_TRUE(WriteFileAtomically(journal, "x").ok());
  EXPECT_EQ(TakeCoordinatorSelf(folder_, journal)->term, 2u);
}

TEST_F(CoordinatorStateTest, ADamagedFileIsNotReplaced) {
  const std::string path = folder_ + "/coordinator.json";
  for (const char* text : {"", "[]", "{\"schema\":1,\"term\":0,\"token_secret\":\"a\"}",
                           "{\"schema\":1,\"term\":1,\"token_secret\":\"short\"}"}) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_THAT(
        std::string(TakeCoordinatorSelf(folder_, folder_ + "/journal.db").status().message()),
        testing::HasSubstr("damaged"));
    EXPECT_EQ(*ReadFile(path, 1000), text);
  }
}

}  // namespace
}  // namespace longhaul::daemon
