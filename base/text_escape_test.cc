#include "base/text_escape.h"

#include "gtest/gtest.h"

namespace longhaul {
namespace {

TEST(EscapeControls, LeavesNoCommandToATerminal) {
  const auto escape = [](absl::string_view text) { return EscapeControls(text, Newlines::kKept); };
  EXPECT_EQ(escape("a\x1B[31m\r\x7F\t"), "a\\x1b[31m\\x0d\\x7f\\x09");
  // U+0080, U+009B and U+009F are controls; U+00A0 is not.
  EXPECT_EQ(escape("\xC2\x80\xC2\x9B\xC2\x9F"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
  EXPECT_EQ(escape("\xC2\xA0\xC3\xA9\xE2\x82\xAC"), "\xC2\xA0\xC3\xA9\xE2\x82\xAC");
}

TEST(EscapeControls, ShowsBytesThatAreNoText) {
  // A C1 control as one byte, a cut sequence, an overlong ESC, a surrogate.
  EXPECT_EQ(EscapeControls("\x9B|\xC2|\xC0\x9B|\xED\xA0\x80", Newlines::kKept),
            "\\x9b|\\xc2|\\xc0\\x9b|\\xed\\xa0\\x80");
}

TEST(EscapeControls, KeepsOrEscapesNewlines) {
  EXPECT_EQ(EscapeControls("a\nb", Newlines::kKept), "a\nb");
  EXPECT_EQ(EscapeControls("a\nb", Newlines::kEscaped), "a\\nb");
}

}  // namespace
}  // namespace longhaul
