#include "run/fields.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Colour { kRed, kGreen };

struct Link {
  std::string from;
  double rate = 0;
};

// One value of every type.
struct Config {
  std::string name;
  int64_t count = 7;
  int64_t stages = 0;
  uint64_t seed = 1;
  double rate = 0.5, first = 0, second = 0;
  bool flag = false;
  std::string choice = "a";
  std::vector<std::string> hosts;
  Colour colour = Colour::kRed;
  std::string parsed;
  std::vector<Link> links;
};

std::vector<Field> FieldsOf(Config& config) {
  const auto parse = [&config](absl::string_view text) {
    if (text == "bad") return absl::InvalidArgumentError("expected anything but bad");
    config.parsed = std::string(text);
    return absl::OkStatus();
  };
  const auto add = [&config]() -> std::vector<Field> {
    Link& link = config.links.emplace_back();
    return {{"from", Text{&link.from}, Presence::kRequired}, {"rate", Real{&link.rate, 0, 1e12}}};
  };
  return {{"name", Text{&config.name}, Presence::kRequired},
          {"part.count", Whole{&config.count, 1, 10}},
          {"part.stages", Whole{&config.stages, 1, 1024, "auto"}},
          {"part.deep.seed", Unsigned{&config.seed}},
          {"part.deep.rate", Real{&config.rate, 0, 1, true, true}},
          {"pair", Reals{{{&config.first, 0, 1}, {&config.second, 0, 1}}}},
          {"flag", Flag{&config.flag}},
          {"choice", Text{&config.choice, {"a", "b"}}},
          {"hosts", Texts{&config.hosts, 2}},
          {"colour", Enum(&config.colour, {"red", "green"})},
          {"parsed", Parsed{parse}},
          {"links", Maps{2, add}}};
}

std::string ErrorOf(absl::string_view text) {
  Config config;
  const auto lines = ReadYaml(text, "a.yaml", FieldsOf(config));
  EXPECT_FALSE(lines.ok()) << text;
  if (lines.ok()) return "";
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(lines.status().message());
}

TEST(ReadYaml, ReadsEveryType) {
  Config config;
  const auto lines = ReadYaml(
      "name: \"x y\"\n"
      "part: {count: 3, stages: 4, deep: {seed: 18446744073709551615, rate: 2.5e-1}}\n"
      "pair: [0, 1.0]\n"
      "flag: true\n"
      "choice: b\n"
      "hosts: [h1, \"2\"]\n"
      "colour: green\n"
      "parsed: 10s\n"
      "links:\n"
      "  - {from: a, rate: 5}\n"
      "  - from: b\n",
      "a.yaml", FieldsOf(config));
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(config.name, "x y");
  EXPECT_EQ(config.count, 3);
  EXPECT_EQ(config.stages, 4);
  EXPECT_EQ(config.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(config.rate, 0.25);
  EXPECT_EQ(config.second, 1.0);
  EXPECT_TRUE(config.flag);
  EXPECT_EQ(config.choice, "b");
  EXPECT_THAT(config.hosts, ElementsAre("h1", "2"));
  EXPECT_EQ(config.colour, Colour::kGreen);
  EXPECT_EQ(config.parsed, "10s");
  ASSERT_EQ(config.links.size(), 2u);
  EXPECT_EQ(config.links[0].rate, 5);
  EXPECT_EQ(config.links[1].from, "b");
  EXPECT_EQ(lines->Where("flag"), "a.yaml:4");
  EXPECT_EQ(lines->Where("part.other"), "a.yaml:2");
  EXPECT_EQ(lines->Where("links[1].from"), "a.yaml:11");
  EXPECT_EQ(lines->Where("nowhere"), "a.yaml");
}

TEST(ReadYaml, KeepsWhatIsNotMentioned) {
  Config config;
  ASSERT_TRUE(ReadYaml("name: x\npart:\n", "a.yaml", FieldsOf(config)).ok());
  EXPECT_EQ(config.count, 7);
  config.stages = 9;
  ASSERT_TRUE(ReadYaml("name: x\npart: {stages: auto}\n", "a.yaml", FieldsOf(config)).ok());
  EXPECT_EQ(config.stages, 0);
}

TEST(ReadYaml, UnknownKeysNameTheNearest) {
  EXPECT_EQ(ErrorOf("name: x\npart:\n  cuont: 3\n"),
            "a.yaml:3: unknown key 'part.cuont'; did you mean 'count'?");
  EXPECT_EQ(ErrorOf("nam: x\n"), "a.yaml:1: unknown key 'nam'; did you mean 'name'?");
  EXPECT_EQ(ErrorOf("rate: 1\n"), "a.yaml:1: unknown key 'rate'; did you mean 'part.deep.rate'?");
  EXPECT_EQ(ErrorOf("part: {deep: {zzzzzzzz: 1}}\n"),
            "a.yaml:1: unknown key 'part.deep.zzzzzzzz'; known here: seed, rate");
  EXPECT_EQ(ErrorOf("name: x\nlinks:\n  - from: a\n    rat: 3\n"),
            "a.yaml:4: unknown key 'links[0].rat'; did you mean 'rate'?");
}

TEST(ReadYaml, MissingKeysAreNamed) {
  EXPECT_EQ(ErrorOf(""), "a.yaml: the key 'name' is missing");
  EXPECT_EQ(ErrorOf("name: x\nlinks: [{rate: 1}]\n"),
            "a.yaml:2: the key 'links[0].from' is missing");
}

TEST(ReadYaml, WrongTypesNameLineAndKey) {
  EXPECT_EQ(ErrorOf("name: x\npart: {count: abc}\n"),
            "a.yaml:2: 'part.count': expected a whole number, got 'abc'");
  EXPECT_THAT(ErrorOf("part: {count: \"3\"}\n"), HasSubstr("got the text '3'"));
  EXPECT_THAT(ErrorOf("part: {count: 1.5}\n"), HasSubstr("expected a whole number, got '1.5'"));
  EXPECT_THAT(ErrorOf("part: {count: 99999999999999999999}\n"), HasSubstr("does not fit"));
  EXPECT_THAT(ErrorOf("part: {count: }\n"), HasSubstr("got nothing"));
  EXPECT_THAT(ErrorOf("part: {count: [1]}\n"), HasSubstr("got a list"));
  EXPECT_THAT(ErrorOf("part: {count: {a: 1}}\n"), HasSubstr("got a section"));
  EXPECT_THAT(ErrorOf("part: 3\n"), HasSubstr("'part' is a section"));
  EXPECT_THAT(ErrorOf("- a\n"), HasSubstr("expected 'key: value' lines"));
  EXPECT_THAT(ErrorOf("part: {stages: some}\n"), HasSubstr("expected auto or a whole number"));
  EXPECT_THAT(ErrorOf("part: {deep: {seed: -1}}\n"), HasSubstr("a whole number from 0"));
  EXPECT_THAT(ErrorOf("pair: [1]\n"), HasSubstr("expected a list of 2 numbers, got 1"));
  EXPECT_THAT(ErrorOf("pair: [1, x]\n"), HasSubstr("expected a number, got 'x'"));
  EXPECT_THAT(ErrorOf("flag: yes\n"), HasSubstr("expected true or false, got 'yes'"));
  EXPECT_THAT(ErrorOf("flag: \"true\"\n"), HasSubstr("got the text 'true'"));
  EXPECT_THAT(ErrorOf("hosts: h1\n"), HasSubstr("expected a list of texts"));
  EXPECT_THAT(ErrorOf("colour: blue\n"), HasSubstr("expected one of red, green, got 'blue'"));
  EXPECT_THAT(ErrorOf("parsed: bad\n"), HasSubstr("a.yaml:1: 'parsed': expected anything but bad"));
  EXPECT_THAT(ErrorOf("links: 3\n"), HasSubstr("expected a list"));
  EXPECT_THAT(ErrorOf("links: [3]\n"), HasSubstr("'links[0]' is a section"));
}

TEST(ReadYaml, RangesNameLineAndKey) {
  EXPECT_EQ(ErrorOf("part: {count: 11}\n"),
            "a.yaml:1: 'part.count': must be a whole number from 1 to 10, got 11");
  EXPECT_THAT(ErrorOf("part: {stages: 0}\n"), HasSubstr("must be auto or a whole number from 1"));
  EXPECT_THAT(ErrorOf("part: {deep: {rate: 0}}\n"), HasSubstr("must be above 0 and below 1"));
  EXPECT_THAT(ErrorOf("pair: [0, 2]\n"), HasSubstr("must be at least 0 and at most 1, got 2"));
  for (const char* number : {"nan", "inf", "-inf", ".inf", ".nan", "1e999"}) {
    EXPECT_NE(ErrorOf(absl::StrCat("part: {deep: {rate: ", number, "}}\n")), "");
  }
  EXPECT_THAT(ErrorOf("choice: c\n"), HasSubstr("must be one of a, b, got 'c'"));
  EXPECT_THAT(ErrorOf("name: \"\"\n"), HasSubstr("must not be empty"));
  EXPECT_THAT(ErrorOf("name: \"a\\nb\"\n"), HasSubstr("control characters"));
  EXPECT_THAT(ErrorOf("hosts: [a, b, c]\n"), HasSubstr("at most 2"));
  EXPECT_THAT(ErrorOf("name: x\nlinks: [{from: a}, {from: a}, {from: a}]\n"),
              HasSubstr("at most 2 elements, got 3"));
}

TEST(CheckFields, ChecksValuesInPlace) {
  Config config;
  config.name = "x";
  EXPECT_FALSE(CheckFields(FieldsOf(config)).has_value());
  config.count = 0;
  EXPECT_EQ(CheckFields(FieldsOf(config))->key, "part.count");
  config.count = 1;
  config.rate = std::nan("");
  EXPECT_EQ(CheckFields(FieldsOf(config))->key, "part.deep.rate");
  config.rate = 0.5;
  config.colour = static_cast<Colour>(5);
  EXPECT_EQ(CheckFields(FieldsOf(config))->key, "colour");
}

}  // namespace
}  // namespace longhaul::run
