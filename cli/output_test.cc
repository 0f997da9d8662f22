#include "cli/output.h"

#include <limits>

#include "cli/context.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("plain text, ümlaut ✓"), "plain text, ümlaut ✓");
  EXPECT_EQ(Printable("two\nlines"), "two\nlines");
  EXPECT_EQ(Printable("\x1b[2J\r\t\x7f"), "\\x1b[2J\\x0d\\x09\\x7f");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a\\x00b");
  // U+009B introduces a control sequence as ESC [ does; U+00A0 is a space.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");
  EXPECT_EQ(Printable("\xc2"), "\\xc2");
}

TEST(PrintTable, AlignsColumnsAndKeepsEachRowOnItsLine) {
  CaptureStdout();
  PrintTable({{"NODE", "REASON"}, {"a-long-name", "lost\nfake  done"}, {"b", "\x1b[31m"}, {"c"}});
  EXPECT_EQ(GetCapturedStdout(),
            "NODE         REASON\n"
            "a-long-name  lost\\nfake  done\n"
            "b            \\x1b[31m\n"
            "c\n");
  CaptureStdout();
  PrintTable({});
  EXPECT_EQ(GetCapturedStdout(), "");
}

TEST(Shortened, CutsWhereAWordOrACharacterEndsAndSaysSo) {
  EXPECT_EQ(Shortened("", 4), "");
  EXPECT_EQ(Shortened("as it is", 8), "as it is");
  EXPECT_EQ(Shortened("a line too long", 12), "a line...");
  EXPECT_EQ(Shortened("a line too long", 13), "a line too...");
  EXPECT_EQ(Shortened("first\nsecond", 100), "first...");
  EXPECT_EQ(Shortened("one_word_of_all", 8), "one_w...");
  EXPECT_EQ(Shortened("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 8), "\xc3\xa4\xc3\xb6...");
}

TEST(PrintJsonLine, IsOneLineOfValidJson) {
  CaptureStdout();
  PrintJsonLine({{"reason", "two\nlines \"quoted\" \xff\x1b"}, {"step", 7}});
  const std::string line = GetCapturedStdout();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["step"], 7);
  EXPECT_EQ(object["reason"], "two\nlines \"quoted\" \xef\xbf\xbd\x1b");
}

TEST(Format, BytesRatesAndSeconds) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1048575), "1.0 MiB");
  EXPECT_EQ(FormatBytes(12.3 * 1048576), "12.3 MiB");
  EXPECT_EQ(FormatBytes(5e15), "4547.5 TiB");
  EXPECT_EQ(FormatRate(0), "0");
  EXPECT_EQ(FormatRate(9999), "9999");
  EXPECT_EQ(FormatRate(9999.9), "10.0k");
  EXPECT_EQ(FormatRate(12345), "12.3k");
  EXPECT_EQ(FormatRate(999999), "1.00M");
  EXPECT_EQ(FormatRate(4.56e6), "4.56M");
  EXPECT_EQ(FormatSeconds(0), "0 ms");
  EXPECT_EQ(FormatSeconds(0.01234), "12.3 ms");
  EXPECT_EQ(FormatSeconds(0.25), "250 ms");
  EXPECT_EQ(FormatSeconds(0.9996), "1.0 s");
  EXPECT_EQ(FormatSeconds(42.4), "42 s");
  EXPECT_EQ(FormatSeconds(59.7), "1 min 0 s");
  EXPECT_EQ(FormatSeconds(200), "3 min 20 s");
  EXPECT_EQ(FormatSeconds(7384), "2 h 3 min");
}

TEST(Format, SurvivesNumbersFromABadPeer) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(FormatSeconds(infinity), "inf s");
  EXPECT_EQ(FormatSeconds(nan), "nan s");
  EXPECT_EQ(FormatBytes(infinity), "inf TiB");
  EXPECT_EQ(FormatRate(nan), "nan");
  CaptureStderr();
  {
    ProgressBar bar("r", 1, "steps");
    bar.Update(std::numeric_limits<uint64_t>::max(), "far beyond the end");
  }
  EXPECT_NE(GetCapturedStderr().find("[########################]"), std::string::npos);
}

TEST(Fail, MapsStatusesToExitCodesAndEscapesTheirText) {
  CaptureStderr();
  EXPECT_EQ(Fail(absl::InvalidArgumentError("bad\x1b[1m")), kExitBadInput);
  EXPECT_EQ(Fail(absl::NotFoundError("x")), kExitBadInput);
  EXPECT_EQ(Fail(absl::PermissionDeniedError("x")), kExitBadInput);
  EXPECT_EQ(Fail(absl::UnavailableError("x")), kExitUnreachable);
  EXPECT_EQ(Fail(absl::DataLossError("x")), kExitFailed);
  const std::string text = GetCapturedStderr();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.substr(0, text.find('\n')), "longhaul: bad\\x1b[1m");
}

}  // namespace
}  // namespace longhaul::cli
