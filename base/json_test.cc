#include "base/json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul {
namespace {

using testing::HasSubstr;

std::string ErrorOf(absl::string_view text, size_t bytes_max = 1 << 20) {
  const auto value = ParseJson(text, bytes_max);
  EXPECT_FALSE(value.ok()) << text;
  if (value.ok()) return "";
  EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(value.status().message());
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const auto value =
      ParseJson(R"({"a": [1, -2, 2.5, true, null, "x\u00e9"], "b": {"c": []}})", 1000);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)["a"].size(), 6u);
  EXPECT_EQ((*value)["a"][1], -2);
  EXPECT_EQ((*value)["a"][2], 2.5);
  EXPECT_EQ((*value)["a"][5], "x\u00e9");
  EXPECT_TRUE((*value)["b"]["c"].is_array());
  EXPECT_EQ(*ParseJson("18446744073709551615", 100), 18446744073709551615u);
}

TEST(ParseJson, RefusesTheBad) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\": 1"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{} {}"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\": 1, \"a\": 2}"), HasSubstr("'a' is given twice"));
  EXPECT_THAT(ErrorOf("{\"a\": 1e999}"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\": NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("\"\xFF\""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[1, 2]", 5), HasSubstr("6 bytes, more than the 5"));
  EXPECT_THAT(ErrorOf(std::string(33, '[') + std::string(33, ']')), HasSubstr("deeper than 32"));
  EXPECT_THAT(ErrorOf(std::string(1000000, '[')), HasSubstr("deeper than 32"));
}

TEST(JsonMembers, HaveTypesAndRanges) {
  const Json object = *ParseJson(
      R"({"t": "x", "f": true, "w": 7, "r": 1.5, "a": [], "o": {}, "big": 18446744073709551615})",
      1000);
  EXPECT_EQ(*JsonText(object, "t"), "x");
  EXPECT_TRUE(*JsonFlag(object, "f"));
  EXPECT_EQ(*JsonWhole(object, "w", 0, 7), 7);
  EXPECT_EQ(*JsonReal(object, "r"), 1.5);
  EXPECT_EQ(*JsonReal(object, "w"), 7.0);
  EXPECT_TRUE((*JsonArray(object, "a"))->empty());
  EXPECT_TRUE((*JsonObject(object, "o"))->empty());
  EXPECT_THAT(JsonWhole(object, "w", 8, 9).status().message(), HasSubstr("from 8 to 9"));
  EXPECT_THAT(JsonWhole(object, "r", 0, 9).status().message(), HasSubstr("'r'"));
  EXPECT_FALSE(JsonWhole(object, "big", INT64_MIN, INT64_MAX).ok());
  EXPECT_THAT(JsonText(object, "w").status().message(), HasSubstr("'w' is not text"));
  EXPECT_THAT(JsonFlag(object, "none").status().message(), HasSubstr("'none' is missing"));
  EXPECT_FALSE(JsonReal(object, "t").ok());
  EXPECT_FALSE(JsonArray(object, "o").ok());
  EXPECT_FALSE(JsonObject(object, "a").ok());
  EXPECT_FALSE(JsonText(Json::array(), "t").ok());
}

TEST(JsonMembers, UnknownKeysAndOtherSchemasAreNamed) {
  const Json object = *ParseJson(R"({"schema": 2, "a": 1})", 100);
  EXPECT_TRUE(JsonOnlyKeys(object, {"schema", "a"}).ok());
  EXPECT_THAT(JsonOnlyKeys(object, {"schema"}).message(),
              HasSubstr("unknown key 'a'; known here: schema"));
  EXPECT_TRUE(JsonSchema(object, 2).ok());
  EXPECT_THAT(JsonSchema(object, 1).message(), HasSubstr("version 2; this build reads version 1"));
  EXPECT_FALSE(JsonSchema(Json(), 1).ok());
}

}  // namespace
}  // namespace longhaul
