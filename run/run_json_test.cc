#include <functional>
#include <limits>
#include <string>

#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/run_spec.h"
#include "run/test_spec.h"

namespace longhaul::run {
namespace {

using testing::HasSubstr;

// A run in which every key has a value that is not its default.
RunSpec UnusualSpec() {
  RunSpec spec = ExampleSpec();
  spec.model.tied = false;
  spec.data = {"d\u00e9p\u00f4t/\"x\".bin", Tokenizer::kUint32, 0.125, std::string(64, 'a')};
  spec.data.documents = DocumentMode::kSeparate;
  spec.data.end_of_document = 17;
  spec.train.optimizer = {"adamw", 0.1 + 0.2, 1.0 / 3, 0.999, 1e-7, 1e-3, 0.7};
  spec.train.precision = model::Precision::kFloat32;
  spec.any_numeric_class = true;
  spec.train.seed = std::numeric_limits<uint64_t>::max();
  spec.stages = 3;
  spec.schedule = "gpipe";
  spec.codec = "int8";
  return spec;
}

TEST(RunJson, RoundTripKeepsEveryValueAndBit) {
  for (const RunSpec& spec : {ExampleSpec(), UnusualSpec()}) {
    const auto back = FromJson(ToJson(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
    EXPECT_EQ(ToJson(*back), ToJson(spec));
  }
}

TEST(RunJson, HasSchemaAndSections) {
  const Json json = *ParseJson(ToJson(UnusualSpec()), 1 << 20);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["name"], "first");
  EXPECT_EQ(json["model"]["layers"], 6);
  EXPECT_EQ(json["data"]["id"], std::string(64, 'a'));
  EXPECT_EQ(json["train"]["optimizer"]["betas"], Json({1.0 / 3, 0.999}));
  EXPECT_EQ(json["pipeline"]["stages"], 3);
  EXPECT_EQ(json["exchange"]["codec"], "int8");
  EXPECT_EQ(json["train"]["precision"], "fp32");
  EXPECT_EQ(json["pipeline"]["numeric_class"], "any");
}

TEST(RunJson, WhatOlderRunsDoNotSayHasItsDefault) {
  Json json = *ParseJson(ToJson(UnusualSpec()), 1 << 20);
  json["train"].erase("precision");
  json["pipeline"].erase("numeric_class");
  const auto spec = FromJson(json.dump());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->train.precision, model::Precision::kBFloat16);
  EXPECT_FALSE(spec->any_numeric_class);
}

TEST(RunJson, RefusesTheBad) {
  const auto error = [](const std::function<void(Json&)>& change) {
    Json json = *ParseJson(ToJson(ExampleSpec()), 1 << 20);
    change(json);
    const auto spec = FromJson(json.dump());
    EXPECT_FALSE(spec.ok()) << json;
    return std::string(spec.status().message());
  };
  EXPECT_THAT(error([](Json& j) { j["schema"] = 2; }), HasSubstr("schema version 2"));
  EXPECT_THAT(error([](Json& j) { j.erase("schema"); }), HasSubstr("'schema' is missing"));
  EXPECT_THAT(error([](Json& j) { j["train"].erase("steps"); }), HasSubstr("'train.steps'"));
  EXPECT_THAT(error([](Json& j) { j["train"]["steps"] = "5"; }), HasSubstr("'train.steps'"));
  EXPECT_THAT(error([](Json& j) { j["train"]["steps"] = 5.5; }), HasSubstr("'train.steps'"));
  EXPECT_THAT(error([](Json& j) { j["train"]["stpes"] = 5; }), HasSubstr("did you mean 'steps'"));
  EXPECT_THAT(error([](Json& j) { j["model"] = nullptr; }), HasSubstr("'model.layers'"));
  EXPECT_THAT(error([](Json& j) { j["model"] = Json::array(); }), HasSubstr("'model'"));
  EXPECT_THAT(error([](Json& j) { j["model"]["heads"] = 3; }), HasSubstr("must divide"));
  EXPECT_THAT(error([](Json& j) { j["data"]["id"] = "../../x"; }), HasSubstr("'data.id'"));
  EXPECT_THAT(error([](Json& j) { j["name"] = "a/b"; }), HasSubstr("'name'"));
  for (const char* text : {"", "{", "[]", "null", "{\"schema\":1}"}) {
    EXPECT_FALSE(FromJson(text).ok()) << text;
  }
}

TEST(RunJson, ReplicasAreANumberAWordOrAList) {
  for (const std::vector<int64_t>& replicas :
       std::vector<std::vector<int64_t>>{{1}, {0}, {4}, {1, 2, 3}}) {
    RunSpec spec = ExampleSpec();
    spec.stages = 3;
    spec.replicas = replicas;
    const auto back = FromJson(ToJson(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
}

}  // namespace
}  // namespace longhaul::run
