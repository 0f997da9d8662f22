#include "daemon/folder.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

class FolderTest : public testing::Test {
 protected:
  FolderTest() : folder_(absl::StrCat(testing::TempDir(), "/folder_test_", getpid(), "/state")) {
    std::filesystem::remove_all(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_;
};

TEST_F(FolderTest, IsTriedWithoutATrace) {
  EXPECT_TRUE(CheckFolder(folder_ + "/deep/er").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_));
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  EXPECT_TRUE(CheckFolder(folder_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "x").ok());
  for (const std::string& bad :
       {folder_ + "/file", folder_ + "/file/state", std::string("/proc/absent/state")}) {
    const absl::Status status = CheckFolder(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad));
  }
}

TEST_F(FolderTest, TwoDaemonsCannotShareOne) {
  {
    const auto lock = FolderLock::Take(folder_);
    ASSERT_TRUE(lock.ok()) << lock.status();
    const auto second = FolderLock::Take(folder_);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr(absl::StrCat("process ", getpid())));
  }
  EXPECT_TRUE(FolderLock::Take(folder_).ok());
}

TEST_F(FolderTest, IdentityPersistsAndIncarnationRises) {
  ASSERT_TRUE(FolderLock::Take(folder_).ok());
  const auto first = TakeIdentity(folder_, "b1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->name, "b1");
  const auto second = TakeIdentity(folder_, "");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->name, "b1");
  EXPECT_GT(second->incarnation, first->incarnation);
  EXPECT_GT(TakeIdentity(folder_, "b1")->incarnation, second->incarnation);
  EXPECT_THAT(std::string(TakeIdentity(folder_, "b2").status().message()),
              HasSubstr("belongs to node 'b1'"));
}

TEST_F(FolderTest, WithoutANameTheHostGivesOne) {
  ASSERT_TRUE(FolderLock::Take(folder_).ok());
  const auto identity = TakeIdentity(folder_, "");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_TRUE(ValidateName("node name", identity->name).ok());
}

TEST_F(FolderTest, ADamagedIdentityIsNotReplaced) {
  ASSERT_TRUE(FolderLock::Take(folder_).ok());
  const std::string path = folder_ + "/identity.json";
  for (const char* text : {"", "{", "{\"schema\":1,\"name\":\"a/b\",\"incarnation\":1}",
                           "{\"schema\":1,\"name\":\"a\",\"incarnation\":-1}",
                           "{\"schema\":9,\"name\":\"a\",\"incarnation\":1}"}) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_THAT(std::string(TakeIdentity(folder_, "a").status().message()), HasSubstr("damaged"));
    EXPECT_EQ(*ReadFile(path, 1000), text);
  }
}

}  // namespace
}  // namespace longhaul::daemon
