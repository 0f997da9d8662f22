// Runs every script in testdata/. With LONGHAUL_REWRITE set, writes what the core does now into the
// scripts instead, for a person to read the difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "coordinator/core/testing/script_runner.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

constexpr char kFolder[] = "coordinator/core/testdata";

std::vector<std::string> ScriptFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The script with its expected lines replaced by what the core does.
std::string Replay(const std::string& script) {
  ScriptRunner runner;
  std::vector<std::string> blocks;
  for (const absl::string_view block : absl::StrSplit(script, "\n\n")) {
    std::vector<std::string> lines;
    std::vector<std::string> actions;
    for (const absl::string_view line : absl::StrSplit(block, '\n', absl::SkipEmpty())) {
      if (line == "----") break;
      lines.emplace_back(line);
      if (line[0] == '#') continue;
      for (std::string& action : runner.Run(std::string(line))) {
        actions.push_back(std::move(action));
      }
    }
    if (lines.empty()) continue;
    lines.emplace_back("----");
    lines.insert(lines.end(), actions.begin(), actions.end());
    blocks.push_back(absl::StrJoin(lines, "\n"));
  }
  return absl::StrCat(absl::StrJoin(blocks, "\n\n"), "\n");
}

class CoreScriptTest : public testing::TestWithParam<std::string> {};

TEST_P(CoreScriptTest, ActionsAreAsWritten) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  const absl::StatusOr<std::string> script = ReadFile(path, 1 << 20);
  ASSERT_TRUE(script.ok()) << script.status();
  const std::string replayed = Replay(*script);
  EXPECT_EQ(replayed.find("\nerror"), std::string::npos) << replayed;
  if (std::getenv("LONGHAUL_REWRITE") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, replayed).ok());
  } else {
    EXPECT_EQ(replayed, *script);
  }
}

INSTANTIATE_TEST_SUITE_P(Scripts, CoreScriptTest, testing::ValuesIn(ScriptFiles()),
                         [](const auto& info) { return info.param; });

TEST(CoreScriptFolderTest, HasTheScripts) { EXPECT_GE(ScriptFiles().size(), 20u); }

}  // namespace
}  // namespace longhaul::coordinator
