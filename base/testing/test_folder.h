// For tests: a folder for the files of one test.
#ifndef LONGHAUL_BASE_TESTING_TEST_FOLDER_H_
#define LONGHAUL_BASE_TESTING_TEST_FOLDER_H_

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "gtest/gtest.h"

namespace longhaul {

// Made empty, and removed in the end. Tests of other names and other processes, which may run at
// the same time, have others.
class TestFolder {
 public:
  explicit TestFolder(absl::string_view name)
      : path_((std::filesystem::path(testing::TempDir()) /
               absl::StrCat("longhaul-", name, "-", getpid()))
                  .string()) {
    std::filesystem::remove_all(path_);
    EXPECT_TRUE(MakeDirectories(path_).ok());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_TESTING_TEST_FOLDER_H_
