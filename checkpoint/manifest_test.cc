#include "checkpoint/manifest.h"

#include <functional>
#include <string>

#include "base/json.h"
#include "checkpoint/testing/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::checkpoint {
namespace {

using testing::HasSubstr;

// Two shards: the first three parameters, and the rest.
Manifest SmallManifest() {
  Manifest manifest;
  manifest.run = "first";
  manifest.epoch = {1, 4};
  manifest.step = 17;
  manifest.tokens = 17 * 4096;
  manifest.numeric_class = "openblas-0.3.21-haswell";
  manifest.shards = {{std::string(64, 'a'), 100, {}}, {std::string(64, 'b'), 200, {}}};
  const model::Graph graph = SmallGraph();
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    manifest.shards[i < 3 ? 0 : 1].parameters.push_back(graph.parameters[i].name);
  }
  return manifest;
}

TEST(ValidateCoverage, AcceptsEveryParameterOnce) {
  EXPECT_TRUE(ValidateCoverage(SmallManifest(), SmallGraph()).ok());
}

TEST(ValidateCoverage, NamesMissingDoubledAndUnknownParameters) {
  const auto error = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = SmallManifest();
    change(manifest);
    const absl::Status status = ValidateCoverage(manifest, SmallGraph());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("run first at step 17"));
    return std::string(status.message());
  };
  EXPECT_THAT(
      error([](Manifest& m) { m.shards[0].parameters.erase(m.shards[0].parameters.begin()); }),
      HasSubstr("parameter 'wte' is in no shard"));
  EXPECT_THAT(error([](Manifest& m) { m.shards[1].parameters.push_back("wte"); }),
              HasSubstr("parameter 'wte' is in shard aaaa"));
  EXPECT_THAT(error([](Manifest& m) { m.shards[0].parameters.push_back("wpe"); }),
              HasSubstr("parameter 'wpe' is in shard aaaa"));
  EXPECT_THAT(error([](Manifest& m) { m.shards[0].parameters.push_back("wze"); }),
              HasSubstr("holds 'wze', which the model does not have"));
  EXPECT_THAT(error([](Manifest& m) { m.shards.clear(); }), HasSubstr("is in no shard"));
  EXPECT_FALSE(ValidateCoverage(SmallManifest(), SmallGraph(/*tied=*/false)).ok());
}

TEST(Manifest, AStageWithoutParametersHasAnEmptyShard) {
  Manifest manifest = SmallManifest();
  manifest.shards.push_back({std::string(64, 'c'), 1, {}});
  EXPECT_TRUE(ValidateCoverage(manifest, SmallGraph()).ok());
}

TEST(ManifestJson, RoundTrips) {
  const Manifest manifest = SmallManifest();
  const auto back = ManifestFromJson(ToJson(manifest));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, manifest);
}

TEST(ManifestJson, RefusesTheBad) {
  const auto refuses = [](absl::string_view what, const std::function<void(Json&)>& change) {
    Json json = *ParseJson(ToJson(SmallManifest()), 1 << 20);
    change(json);
    const auto manifest = ManifestFromJson(json.dump());
    EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(manifest.status().message(), HasSubstr(std::string(what)));
  };
  refuses("schema version 9", [](Json& j) { j["schema"] = 9; });
  refuses("run name", [](Json& j) { j["run"] = "../x"; });
  refuses("'run'", [](Json& j) { j["run"] = 3; });
  refuses("'step'", [](Json& j) { j["step"] = -1; });
  refuses("'step'", [](Json& j) { j["step"] = 1e3; });
  refuses("'tokens'", [](Json& j) { j["tokens"] = UINT64_MAX; });
  refuses("'term'", [](Json& j) { j["epoch"]["term"] = int64_t{1} << 32; });
  refuses("'epoch'", [](Json& j) { j.erase("epoch"); });
  refuses("'sha256'", [](Json& j) { j["shards"][1]["sha256"] = "../../../../etc/passwd"; });
  refuses("shard 1", [](Json& j) { j["shards"][1]["sha256"] = std::string(64, 'A'); });
  refuses("'bytes'", [](Json& j) { j["shards"][0]["bytes"] = -5; });
  refuses("'parameters'", [](Json& j) { j["shards"][0]["parameters"] = {1}; });
  refuses("'more'", [](Json& j) { j["more"] = 1; });
  refuses("not a JSON object", [](Json& j) { j["shards"][0] = 1; });
  const std::string good = ToJson(SmallManifest());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ManifestFromJson(good.substr(0, length)).ok());
  }
}

}  // namespace
}  // namespace longhaul::checkpoint
