#include "cli/python.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;

// Shell scripts stand for Pythons; the PATH has nothing else of that name.
class PythonTest : public testing::Test {
 protected:
  PythonTest() {
    EXPECT_TRUE(MakeDirectories(folder_ + "/path").ok());
    ::setenv("PATH", absl::StrCat(folder_, "/path:/usr/bin:/bin").c_str(), 1);
    ::unsetenv("LONGHAUL_PYTHON");
  }
  ~PythonTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("LONGHAUL_PYTHON");
  }

  void Script(const std::string& name, const std::string& body) {
    const std::string path = absl::StrCat(folder_, "/", name);
    ASSERT_TRUE(WriteFileAtomically(path, absl::StrCat("#!/bin/sh\n", body, "\n")).ok());
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  }
  absl::StatusOr<std::string> Find(bool needs_tokenizers, bool install = false) {
    return FindPython({needs_tokenizers, install, own_});
  }
  std::string ErrorOf(const absl::StatusOr<std::string>& python) {
    EXPECT_EQ(python.status().code(), absl::StatusCode::kFailedPrecondition) << python.status();
    return std::string(python.status().message());
  }

  const std::string path_ = ::getenv("PATH");
  const TestFolder test_folder_{"python-test"};
  const std::string& folder_ = test_folder_.path();
  const std::string own_ = folder_ + "/own";
  // Has no tokenizers; makes environments whose Python has them after `pip install`.
  const std::string plain_ = R"(
case "$*" in
  *"import tokenizers"*) exit 1 ;;
  "-m venv --clear "*)
    mkdir -p "$4/bin"
    cat > "$4/bin/python3" <<'END'
#!/bin/sh
case "$*" in
  *pip*) touch "$0.done" ;;
  *import*) test -e "$0.done" ;;
esac
END
    chmod 700 "$4/bin/python3" ;;
esac)";
};

TEST_F(PythonTest, TakesTheFirstThatHasTheLibrary) {
  Script("path/python3", "exit 0");
  EXPECT_EQ(*Find(true), "python3");
  Script("path/python3", plain_);
  EXPECT_EQ(*Find(false), "python3");
  ASSERT_TRUE(MakeDirectories(own_ + "/bin").ok());
  Script("own/bin/python3", "exit 0");
  EXPECT_EQ(*Find(true), own_ + "/bin/python3");
}

TEST_F(PythonTest, TheUsersChoiceIsTheOnlyOne) {
  Script("path/python3", "exit 0");
  Script("mine", "exit 0");
  ::setenv("LONGHAUL_PYTHON", (folder_ + "/mine").c_str(), 1);
  EXPECT_EQ(*Find(true), folder_ + "/mine");
  Script("mine", "exit 1");
  EXPECT_THAT(ErrorOf(Find(true, true)), HasSubstr("mine (LONGHAUL_PYTHON)"));
  ::setenv("LONGHAUL_PYTHON", (folder_ + "/none").c_str(), 1);
  EXPECT_THAT(ErrorOf(Find(false)), HasSubstr("none (LONGHAUL_PYTHON)"));
}

TEST_F(PythonTest, SaysHowToGetTheLibrary) {
  Script("path/python3", "exit 1");
  const std::string error = ErrorOf(Find(true));
  EXPECT_THAT(error, HasSubstr("--install"));
  EXPECT_THAT(error, HasSubstr(own_));
  EXPECT_THAT(ErrorOf(Find(false)), HasSubstr("python3 is not installed"));
  EXPECT_FALSE(std::filesystem::exists(own_));
}

TEST_F(PythonTest, InstallsWhenAsked) {
  Script("path/python3", plain_);
  const auto python = Find(true, true);
  ASSERT_TRUE(python.ok()) << python.status();
  EXPECT_EQ(*python, own_ + "/bin/python3");
  EXPECT_EQ(*Find(true), own_ + "/bin/python3");  // and it stays
  Script("path/python3", "exit 1");
  std::filesystem::remove_all(own_);
  EXPECT_THAT(ErrorOf(Find(true, true)), HasSubstr("python3-venv"));
}

TEST_F(PythonTest, BecomingWhatIsNotThereIsAnError) {
  EXPECT_EQ(Become({folder_ + "/none"}).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace longhaul::cli
