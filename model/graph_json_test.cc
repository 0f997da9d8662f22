#include "model/graph_json.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::model {
namespace {

using ::testing::HasSubstr;

constexpr char kSmall[] = R"({"schema": 1, "vocab": 5, "context": 3, "layers": 1,
 "parameters": [
  {"name": "table", "shape": [5, 4], "init": "normal", "standard_deviation": 0.02, "decays": true},
  {"name": "w", "shape": [4, 4], "init": "ones", "decays": false}],
 "ops": [
  {"op": "embedding", "name": "x", "layer": 0, "parameters": ["table"], "width": 4},
  {"op": "linear", "name": "y", "layer": 0, "inputs": ["x"], "parameters": ["w"], "width": 4},
  {"op": "linear", "name": "logits", "layer": 1, "inputs": ["y"], "parameters": ["table"],
   "width": 5},
  {"op": "softmax_cross_entropy", "name": "loss", "layer": 1, "inputs": ["logits"]}]})";

ModelSpec LlamaSpec() {
  ModelSpec spec;
  spec.family = "llama";
  spec.layers = 2;
  spec.hidden = 16;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.context = 8;
  spec.vocab = 32;
  spec.dropout = 0.1;
  spec.rope_scaling.factor = 8;
  return spec;
}

std::string ErrorOf(const std::string& json) {
  const absl::StatusOr<Graph> graph = GraphFromJson(json);
  EXPECT_FALSE(graph.ok()) << json;
  if (graph.ok()) return "";
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(graph.status().message());
}

TEST(GraphJson, ReadsWhatIsWritten) {
  const absl::StatusOr<Graph> graph = GraphFromJson(kSmall);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->ops.size(), 4u);
  EXPECT_EQ(graph->ops[2].parameters, graph->ops[0].parameters);
  EXPECT_EQ(graph->parameters[0].init.standard_deviation, 0.02);
  EXPECT_EQ(graph->edges[2].width, 5);
}

TEST(GraphJson, FamiliesSurviveARoundTrip) {
  ModelSpec gpt2 = LlamaSpec();
  gpt2.family = "gpt2";
  gpt2.kv_heads = 0;
  gpt2.rope_scaling = {};
  for (const ModelSpec& spec : {LlamaSpec(), gpt2}) {
    const Graph graph = *BuildGraph(spec);
    const std::string json = GraphToJson(graph);
    EXPECT_EQ(json.find('\n'), std::string::npos);
    const absl::StatusOr<Graph> again = GraphFromJson(json);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(GraphToJson(*again), json);
    ASSERT_EQ(again->ops.size(), graph.ops.size());
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      EXPECT_EQ(again->ops[op].kind, graph.ops[op].kind);
      EXPECT_EQ(again->ops[op].inputs, graph.ops[op].inputs);
      EXPECT_EQ(again->ops[op].parameters, graph.ops[op].parameters);
      EXPECT_EQ(again->ops[op].rotary, graph.ops[op].rotary);
      EXPECT_EQ(again->ops[op].kv_heads, graph.ops[op].kv_heads);
      EXPECT_EQ(again->ops[op].epsilon, graph.ops[op].epsilon);
      EXPECT_EQ(again->ops[op].probability, graph.ops[op].probability);
    }
  }
}

TEST(GraphJson, DefectsAreNamed) {
  const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"\"op\": \"linear\", \"name\": \"y\"", "\"op\": \"conv\", \"name\": \"y\"",
       "ops[1] 'y': operator 'conv' is not known; use one of: embedding"},
      {"[\"x\"]", "[\"logits\"]", "ops[1] 'y': 'inputs' names 'logits', which no operator before"},
      {"[\"x\"]", "[\"y\"]", "no cycles"},
      {"[\"x\"]", "[1]", "'inputs' must hold names"},
      {"[\"w\"]", "[\"v\"]", "'parameters' names 'v', which is not among"},
      {"\"shape\": [4, 4]", "\"shape\": [5, 4]",
       "needs parameter 0 of shape [4, 4], but 'w' is [5, 4]"},
      {"\"name\": \"w\"", "\"name\": \"table\"", "two parameters are named 'table'"},
      {"\"name\": \"y\", \"layer\": 0", "\"name\": \"x\", \"layer\": 0",
       "two operators are named 'x'"},
      {"\"w\"", "\"__metadata__\"", "parameter '__metadata__' has a name that checkpoints keep"},
      {"\"w\"", "\"\xFF\"", "not JSON at byte"},
      {"\"shape\": [4, 4]", "\"shape\": [4, 9223372036854775807]", "parameters[1] 'w': "},
      {"\"shape\": [4, 4]", "\"shape\": [4, 4e0]", "'shape'"},
      {"\"shape\": [4, 4]", "\"shape\": [4, -4]", "'shape'"},
      {"\"shape\": [4, 4]", "\"shape\": []", "1 or 2 sizes"},
      {"\"ones\"", "\"uniform\"", "'init' is 'uniform'; use one of: zeros, ones, normal"},
      {"0.02", "-1", "'standard_deviation' must be above 0"},
      {"0.02", "1e38", "'standard_deviation' must be at most 1e+30"},
      {"\"layers\": 1", "\"layers\": 100000", "'layers'"},
      {"\"vocab\": 5", "\"vocab\": 1e30", "'vocab'"},
      {"\"schema\": 1", "\"schema\": 2", "schema"},
      {"\"width\": 5", "\"width\": 5, \"heads\": 2", "unknown key 'heads'; known here: "},
      {"\"context\": 3", "\"context\": 3, \"contxt\": 3", "unknown key 'contxt'"},
      {"\"inputs\": [\"y\"]", "\"inputs\": [\"x\"]", "edge 'y' is never used"},
  };
  for (const auto& test : cases) {
    std::string json = kSmall;
    ASSERT_GT(absl::StrReplaceAll({{test.from, test.to}}, &json), 0) << test.from;
    EXPECT_THAT(ErrorOf(json), HasSubstr(test.expected));
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("the model's graph"));
  EXPECT_THAT(ErrorOf(std::string(kGraphBytesMax + 1, ' ')), HasSubstr("bytes"));
}

TEST(GraphJson, AParameterWithoutUseIsNamed) {
  Graph graph = *GraphFromJson(kSmall);
  graph.parameters.push_back({"spare", {4}, {}, false});
  EXPECT_THAT(ErrorOf(GraphToJson(graph)), HasSubstr("parameter 'spare' is never used"));
}

// Whatever the bytes say, they are refused or make a graph that is valid.
TEST(GraphJson, MutationsAreReadOrRefused) {
  const std::string original = GraphToJson(*BuildGraph(LlamaSpec()));
  const std::string alphabet = "0123456789-{}[],:\"e.truefalsnc ";
  int read = 0;
  for (uint64_t number = 0; number < 1500; ++number) {
    std::string json = original;
    for (uint64_t change = 0; change <= number % 3; ++change) {
      const auto bits =
          RandomBits(3, RandomStream::kBatch, 0, static_cast<uint32_t>(change), number);
      const size_t at = bits[0] % json.size();
      switch (bits[1] % 3) {
        case 0:
          json[at] = alphabet[bits[2] % alphabet.size()];
          break;
        case 1:
          json.erase(at, 1 + bits[2] % 8);
          break;
        default:
          json.insert(at, json.substr(bits[2] % json.size(), 1 + bits[3] % 40));
      }
    }
    const absl::StatusOr<Graph> graph = GraphFromJson(json);
    if (!graph.ok()) continue;
    ++read;
    EXPECT_TRUE(graph->Validate().ok());
    EXPECT_TRUE(GraphFromJson(GraphToJson(*graph)).ok());
  }
  EXPECT_GT(read, 0);
}

TEST(GraphJson, ASpecHoldsTheGraphAndWhatOthersRead) {
  const absl::StatusOr<ModelSpec> spec = SpecOfGraph(kSmall);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->vocab, 5);
  EXPECT_EQ(spec->context, 3);
  EXPECT_EQ(spec->hidden, 4);
  const absl::StatusOr<Graph> graph = BuildGraph(*spec);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(GraphToJson(*graph), spec->graph);
}

}  // namespace
}  // namespace longhaul::model
