// The script as bash runs it.
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "cli/context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    EXPECT_TRUE(MakeDirectories(folder_ + "/programs").ok());
    // In place of the system's: whatever the load, what is asked has the time to answer.
    AddProgram("programs/timeout", "echo \"$1\" >>../limits; shift; exec \"$@\"\n");
    CLI::App app{"test", "longhaul"};
    Context context;
    Command chosen;
    RegisterRunCommands(app, context, chosen);
    RegisterPlanCommand(app, context, chosen);
    RegisterLocalCommands(app, context, chosen);
    RegisterNodeCommands(app, context, chosen);
    RegisterCompletionCommand(app, context, chosen);
    app.parse("completion bash", /*program_name_included=*/false);
    testing::internal::CaptureStdout();
    EXPECT_EQ(chosen(context), kExitDone);
    EXPECT_TRUE(
        WriteFileAtomically(folder_ + "/script", testing::internal::GetCapturedStdout()).ok());
  }

  // What bash offers for the last of `words`, in a folder with some files.
  std::vector<std::string> Complete(const std::vector<std::string>& words) {
    const std::string command = absl::StrCat(
        "source ../script; COMP_WORDS=('", absl::StrJoin(words, "' '"),
        "'); COMP_CWORD=", words.size() - 1,
        "; _longhaul; [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/command", command).ok());
    EXPECT_TRUE(MakeDirectories(folder_ + "/files").ok());
    std::FILE* pipe = ::popen(absl::StrCat("cd '", folder_, "/files' && PATH='", folder_,
                                           "/programs':\"$PATH\" bash -c 'source ../command' 2>&1")
                                  .c_str(),
                              "r");
    std::string output;
    std::array<char, 4096> piece;
    while (const size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) {
      output.append(piece.data(), got);
    }
    EXPECT_EQ(::pclose(pipe), 0) << output;
    return absl::StrSplit(output, '\n', absl::SkipEmpty());
  }
  void AddFile(const std::string& name) {
    EXPECT_TRUE(MakeDirectories(folder_ + "/files").ok());
    EXPECT_TRUE(WriteFileAtomically(absl::StrCat(folder_, "/files/", name), "x").ok());
  }

  // `name` in the fixture's folder: "longhaul" is what the script asks for names.
  void AddProgram(const std::string& name, const std::string& script) {
    const std::string path = absl::StrCat(folder_, "/", name);
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + script).ok());
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
  }

  const TestFolder test_folder_{"completion-test"};
  const std::string& folder_ = test_folder_.path();
};

TEST_F(CompletionTest, OffersCommands) {
  EXPECT_THAT(Complete({"longhaul", ""}), AllOf(Contains("run"), Contains("plan"), Contains("up"),
                                                Contains("completion"), Not(Contains("watch"))));
  EXPECT_THAT(Complete({"longhaul", "comp"}), ElementsAre("completion"));
}

TEST_F(CompletionTest, OffersSubcommandsAndTheirOptions) {
  EXPECT_THAT(Complete({"longhaul", "run", "wa"}), ElementsAre("watch"));
  EXPECT_THAT(Complete({"longhaul", "run", "watch", "--out"}), ElementsAre("--output"));
  EXPECT_THAT(Complete({"longhaul", "run", "watch", "first", "--out"}), ElementsAre("--output"));
  EXPECT_THAT(Complete({"longhaul", "run", "watch", "first", "--dir", "d", "--out"}),
              ElementsAre("--output"));
}

TEST_F(CompletionTest, OffersTheValuesOfAnOption) {
  EXPECT_THAT(Complete({"longhaul", "run", "ls", "--output", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(Complete({"longhaul", "run", "show", "x", "--output", "j"}), ElementsAre("json"));
  EXPECT_THAT(Complete({"longhaul", "run", "ls", "--output", "="}), ElementsAre("text", "json"));
  EXPECT_THAT(Complete({"longhaul", "run", "ls", "--output", "=", "t"}), ElementsAre("text"));
  EXPECT_THAT(Complete({"longhaul", "completion", "b"}), ElementsAre("bash"));
}

TEST_F(CompletionTest, OffersNamesOfRunsAndNodes) {
  AddProgram("longhaul",
             "echo \"$@\" >>../asked; echo 'NAME STATE'\n"
             "echo \"$1-a done\"; echo \"$1-b running\"; echo '$(touch ../hit) x'; echo '`touch "
             "../hit`'; echo; echo 'reason of it'\n");
  EXPECT_THAT(Complete({"../longhaul", "run", "show", ""}), ElementsAre("run-a", "run-b"));
  EXPECT_THAT(Complete({"../longhaul", "run", "watch", "run-b"}), ElementsAre("run-b"));
  EXPECT_THAT(Complete({"../longhaul", "node", "drain", "--insecure", "--dir", "a b", "x", ""}),
              ElementsAre("node-a", "node-b"));
  EXPECT_THAT(Complete({"../longhaul", "run", "show", "run-a", ""}), Not(Contains("run-b")));
  EXPECT_EQ(*ReadFile(folder_ + "/asked", 999), "run ls\nrun ls\nnode ls --insecure --dir a b\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/hit"));
}

TEST_F(CompletionTest, IsSilentWhereNoCoordinatorAnswersSoon) {
  EXPECT_THAT(Complete({"../absent", "run", "show", ""}), IsEmpty());
  AddProgram("longhaul", "echo 'longhaul: cannot reach it' >&2; exit 3\n");
  EXPECT_THAT(Complete({"../longhaul", "run", "show", ""}), IsEmpty());
  AddProgram("longhaul", "echo 'NAME STATE'; echo 'late running'\n");
  EXPECT_THAT(Complete({"../longhaul", "run", "show", ""}), ElementsAre("late"));
  // As `timeout` ends what takes longer: within the second that it was given each time.
  AddProgram("programs/timeout", "echo \"$1\" >>../limits; exit 124\n");
  EXPECT_THAT(Complete({"../longhaul", "run", "show", ""}), IsEmpty());
  EXPECT_EQ(*ReadFile(folder_ + "/limits", 99), "1\n1\n1\n1\n");
}

TEST_F(CompletionTest, OffersFilesWhateverTheirNames) {
  AddFile("a run.yaml");
  AddFile("a*");
  EXPECT_THAT(Complete({"longhaul", "plan", "a"}),
              testing::UnorderedElementsAre("a run.yaml", "a*"));
}

TEST_F(CompletionTest, OffersNothingForWhatItDoesNotKnow) {
  EXPECT_THAT(Complete({"longhaul", "nonsense", "--x"}), IsEmpty());
  EXPECT_THAT(Complete({"longhaul", "a b", "$(touch hit)", "--x"}), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/files/hit"));
}

}  // namespace
}  // namespace longhaul::cli
