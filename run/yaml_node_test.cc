#include "run/yaml_node.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::run {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ErrorOf(absl::string_view text) {
  const auto root = ParseYaml(text, "a.yaml");
  EXPECT_FALSE(root.ok()) << text;
  if (root.ok()) return "";
  EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(root.status().message());
}

TEST(ParseYaml, KeepsLinesOrderAndNotation) {
  const auto root = ParseYaml("a: 1\nb:\n  c: [x, \"2\"]\n  d:\n", "a.yaml");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->kind, YamlNode::Kind::kMap);
  ASSERT_EQ(root->keys.size(), 2u);
  EXPECT_EQ(root->keys[0].name, "a");
  EXPECT_EQ(root->keys[0].line, 1);
  EXPECT_EQ(root->items[0].text, "1");
  EXPECT_FALSE(root->items[0].quoted);
  EXPECT_EQ(root->keys[1].line, 2);
  const YamlNode& b = root->items[1];
  ASSERT_EQ(b.keys.size(), 2u);
  EXPECT_EQ(b.keys[0].line, 3);
  ASSERT_EQ(b.items[0].kind, YamlNode::Kind::kSequence);
  ASSERT_EQ(b.items[0].items.size(), 2u);
  EXPECT_TRUE(b.items[0].items[1].quoted);
  EXPECT_EQ(b.items[1].kind, YamlNode::Kind::kNull);
}

TEST(ParseYaml, AcceptsNothing) {
  for (const char* text : {"", "\n\n", "# only a comment\n"}) {
    const auto root = ParseYaml(text, "a.yaml");
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(root->kind, YamlNode::Kind::kNull);
  }
}

TEST(ParseYaml, ErrorsNameFileAndLine) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\nc: }\n"), StartsWith("a.yaml:"));
  EXPECT_THAT(ErrorOf("a: 1\n\tb: 2\n"), StartsWith("a.yaml:2"));
  EXPECT_THAT(ErrorOf("a: 1\nb: 2\na: 3\n"), HasSubstr("a.yaml:3: the key 'a' is already given"));
  EXPECT_THAT(ErrorOf("a: 1\n[b, c]: 2\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(ErrorOf("a: 1\n---\nb: 2\n"), HasSubstr("several documents"));
  EXPECT_THAT(ErrorOf("a: !!int 1\n"), HasSubstr("a.yaml:1: tags"));
  EXPECT_THAT(ErrorOf("a: \"\\q\"\n"), StartsWith("a.yaml:1"));
}

TEST(ParseYaml, RefusesAnchorsAndAliases) {
  EXPECT_THAT(ErrorOf("a: &x 1\nb: *x\n"), HasSubstr("a.yaml:1: anchors"));
  EXPECT_THAT(ErrorOf("a: 1\nb: *x\n"), StartsWith("a.yaml:2"));
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  }
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("anchors"));
}

TEST(ParseYaml, BoundsSizeAndDepth) {
  EXPECT_THAT(ErrorOf(std::string(kYamlBytesMax + 1, ' ')), HasSubstr("bytes, more than"));
  const std::string deep = std::string(33, '[') + std::string(33, ']');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("nested deeper than 32"));
  EXPECT_NE(ErrorOf(std::string(100000, '[')), "");
  EXPECT_NE(ErrorOf(std::string(100000, '{')), "");
}

TEST(ParseYaml, RefusesWhatIsNotText) {
  EXPECT_THAT(ErrorOf("a: \xFF\n"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf(absl::string_view("a: \0b\n", 6)), HasSubstr("not UTF-8"));
}

TEST(IsUtf8, FollowsTheTable) {
  for (const char* good : {"", "a", "\u00e9", "\u20ac", "\U0001F600", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xF0\x9F\x98", "\xC3", "a\xC3(b"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

}  // namespace
}  // namespace longhaul::run
