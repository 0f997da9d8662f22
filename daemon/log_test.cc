#include "daemon/log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(FormatLogLine, QuotesAndEscapes) {
  EXPECT_EQ(FormatLogLine("node lost", {{"node", "b1"}, {"reason", "no heartbeat"}, {"empty", ""}}),
            "node lost node=b1 reason=\"no heartbeat\" empty=\"\"");
  EXPECT_EQ(FormatLogLine("a\nb\x1B[31m", {{"key", "x\"y\n\x7F"}}),
            "a\\nb\\x1b[31m key=\"x\\\"y\\n\\x7f\"");
  // U+009B begins a terminal command as ESC [ does; ordinary letters stay.
  EXPECT_EQ(FormatLogLine("\xC2\x9B \xC3\xA9", {}), "\\xc2\\x9b \xC3\xA9");
}

TEST(Log, PriorityStyleAndLevels) {
  std::vector<std::string> lines;
  Log log(LogStyle::kPriority, LogLevel::kInfo,
          [&lines](const std::string& line) { lines.push_back(line); });
  log.Debug("hidden");
  log.Info("info");
  log.Warning("warning", {{"key", "1"}});
  log.Error("error {} %s");
  log.SetLevel(LogLevel::kDebug);
  log.Debug("seen");
  EXPECT_THAT(lines, testing::ElementsAre("<6>info\n", "<4>warning key=1\n", "<3>error {} %s\n",
                                          "<7>seen\n"));
}

TEST(Log, TimeStyleBeginsWithTheTimeInUtc) {
  std::string line;
  Log log(LogStyle::kTime, LogLevel::kInfo, [&line](const std::string& l) { line = l; });
  log.Warning("node lost");
  EXPECT_THAT(line, testing::MatchesRegex("20..-..-..T..:..:..\\....Z warning node lost\n"));
}

}  // namespace
}  // namespace longhaul::daemon
