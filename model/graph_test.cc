#include "model/graph.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Gpt2(int64_t layers, bool tied) {
  ModelSpec spec;
  spec.layers = layers;
  spec.hidden = 8;
  spec.heads = 2;
  spec.context = 4;
  spec.vocab = 11;
  spec.tied = tied;
  return *BuildGraph(spec);
}

// One layer that is only a linear map between embedding and head.
Graph Small() {
  Graph graph;
  graph.family = "test";
  graph.vocab = 5;
  graph.context = 3;
  graph.layers = 2;
  graph.parameters = {{"table", {5, 4}, {}, true},
                      {"positions", {3, 4}, {}, true},
                      {"w", {4, 4}, {}, true},
                      {"head", {5, 4}, {}, true}};
  graph.edges = {{"x", 4}, {"y", 4}, {"logits", 5}};
  graph.ops = {{OpKind::kEmbedding, "embedding", 0, {}, 0, {0, 1}, 0, 0},
               {OpKind::kLinear, "w", 0, {0}, 1, {2}, 0, 0},
               {OpKind::kLinear, "head", 1, {1}, 2, {3}, 0, 0},
               {OpKind::kSoftmaxCrossEntropy, "loss", 1, {2}, -1, {}, 0, 0}};
  return graph;
}

TEST(GraphTest, SmallGraphIsValid) { EXPECT_TRUE(Small().Validate().ok()); }

struct Defect {
  const char* expected;
  std::function<void(Graph&)> damage;
};

TEST(GraphTest, ValidateNamesTheDefect) {
  const Defect defects[] = {
      {"vocabulary is 0", [](Graph& g) { g.vocab = 0; }},
      {"context is -1", [](Graph& g) { g.context = -1; }},
      {"number of layers is 1025", [](Graph& g) { g.layers = 1025; }},
      {"number of operators is 0", [](Graph& g) { g.ops.clear(); }},
      {"width of edge 'y' is 0", [](Graph& g) { g.edges[1].width = 0; }},
      {"dimension of parameter 'w'",
       [](Graph& g) {
         g.parameters[2].shape = {4, int64_t{1} << 62};
       }},
      {"'w' must have one or two dimensions", [](Graph& g) { g.parameters[2].shape = {}; }},
      {"two parameters are named 'w'", [](Graph& g) { g.parameters[3].name = "w"; }},
      {"parameter '__metadata__' has a name that checkpoints keep",
       [](Graph& g) { g.parameters[2].name = "__metadata__"; }},
      {"'x.second_moment' has a name", [](Graph& g) { g.parameters[2].name = "x.second_moment"; }},
      {"two edges are named 'x'", [](Graph& g) { g.edges[1].name = "x"; }},
      {"two operators are named 'head'", [](Graph& g) { g.ops[1].name = "head"; }},
      {"one of the edges has no name", [](Graph& g) { g.edges[1].name = ""; }},
      {"takes 1 inputs, not 2",
       [](Graph& g) {
         g.ops[1].inputs = {0, 0};
       }},
      {"takes 1 to 2 parameters, not 0", [](Graph& g) { g.ops[1].parameters = {}; }},
      {"has output edge 3", [](Graph& g) { g.ops[1].output = 3; }},
      {"'loss' has output edge 1", [](Graph& g) { g.ops[3].output = 1; }},
      {"input edge -1, which does not exist", [](Graph& g) { g.ops[1].inputs = {-1}; }},
      {"parameter 4, which does not exist", [](Graph& g) { g.ops[1].parameters = {4}; }},
      {"only it, is the embedding", [](Graph& g) { g.ops.erase(g.ops.begin()); }},
      {"only it, is the loss", [](Graph& g) { g.ops.pop_back(); }},
      {"'head' has layer 3", [](Graph& g) { g.ops[2].layer = 3; }},
      {"'w' has layer -1", [](Graph& g) { g.ops[1].layer = -1; }},
      {"'head' has layer 0; it must be from 1",
       [](Graph& g) { g.ops[1].layer = 1, g.ops[2].layer = 0; }},
      {"reads edge 'y' before it is made", [](Graph& g) { g.ops[1].inputs = {1}; }},
      {"makes edge 'x' a second time", [](Graph& g) { g.ops[1].output = 0; }},
      {"edge 'z' is never used",
       [](Graph& g) {
         g.edges.push_back({"z", 4});
         g.ops.insert(g.ops.begin() + 1, {OpKind::kGelu, "gelu", 0, {0}, 3, {}, 0, 0});
       }},
      {"parameter 'spare' is never used",
       [](Graph& g) {
         g.parameters.push_back({"spare", {4}, {}, false});
       }},
      {"needs parameter 0 of shape [5, 4], but 'table' is [6, 4]",
       [](Graph& g) {
         g.parameters[0].shape = {6, 4};
       }},
      {"needs parameter 0 of shape [4, 4], but 'w' is [4, 5]",
       [](Graph& g) {
         g.parameters[2].shape = {4, 5};
       }},
      {"needs edge 'logits' of width 5",
       [](Graph& g) {
         g.edges[2].width = 6, g.parameters[3].shape = {6, 4};
       }},
      {"'head' makes the logits; it must be linear and in layer 1",
       [](Graph& g) { g.ops[2].layer = 0; }},
  };
  for (const Defect& defect : defects) {
    Graph graph = Small();
    defect.damage(graph);
    const absl::Status status = graph.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << defect.expected;
    EXPECT_THAT(std::string(status.message()), HasSubstr(defect.expected));
  }
}

TEST(GraphTest, ValidateChecksOperatorsOfABlock) {
  const Defect defects[] = {
      {"operator 'h.0.ln_1' needs an epsilon", [](Graph& g) { g.ops[1].epsilon = 0; }},
      {"3 heads do not divide width 8", [](Graph& g) { g.ops[3].heads = g.ops[3].kv_heads = 3; }},
      {"has 4611686018427387904 heads",
       [](Graph& g) { g.ops[3].heads = g.ops[3].kv_heads = int64_t{1} << 62; }},
      {"0 key-value heads do not divide 2 heads", [](Graph& g) { g.ops[3].kv_heads = 0; }},
      {"3 key-value heads do not divide 2 heads", [](Graph& g) { g.ops[3].kv_heads = 3; }},
      {"operator 'h.0.attn.residual' needs edge 'h.0.attn.qkv' of width 8, but it is 24",
       [](Graph& g) { g.ops[5].inputs[0] = 2; }},
  };
  for (const Defect& defect : defects) {
    Graph graph = Gpt2(1, true);
    defect.damage(graph);
    EXPECT_THAT(std::string(graph.Validate().message()), HasSubstr(defect.expected));
  }
}

TEST(GraphTest, BlockPointsLieBetweenBlocks) {
  const Graph graph = Gpt2(4, true);
  const std::vector<int> cuts = graph.BlockPoints();
  ASSERT_EQ(cuts.size(), 4);  // the last in front of the head
  for (size_t i = 0; i < cuts.size(); ++i) {
    EXPECT_EQ(graph.ops[cuts[i] - 1].layer, static_cast<int>(i));
    EXPECT_EQ(graph.ops[cuts[i]].layer, static_cast<int>(i) + 1);
    const std::vector<int> edges = graph.CutEdges(cuts[i]);
    ASSERT_EQ(edges.size(), 1);
    EXPECT_EQ(graph.edges[edges[0]].name, "h." + std::to_string(i) + ".mlp.residual");
  }
  EXPECT_EQ(graph.ops.front().layer, 0);
  EXPECT_EQ(graph.ops.back().layer, 4);
}

TEST(GraphTest, EveryPlaceButThatInFrontOfTheLossIsACut) {
  const Graph graph = Gpt2(1, true);
  const std::vector<int> cuts = graph.CutPoints();
  ASSERT_EQ(cuts.size(), graph.ops.size() - 2);
  for (size_t i = 0; i < cuts.size(); ++i) EXPECT_EQ(cuts[i], static_cast<int>(i) + 1);
}

TEST(GraphTest, EverythingMadeBeforeAndReadAfterCrossesACut) {
  const Graph graph = Gpt2(1, true);  // embedding, ln_1, qkv, attn, proj, residual, ...
  const auto names = [&](int position) {
    std::vector<std::string> crossing;
    for (int edge : graph.CutEdges(position)) crossing.push_back(graph.edges[edge].name);
    return crossing;
  };
  EXPECT_THAT(names(1), ElementsAre("embedding"));
  EXPECT_THAT(names(3), ElementsAre("embedding", "h.0.attn.qkv"));
  EXPECT_THAT(names(5), ElementsAre("embedding", "h.0.attn.proj"));
  EXPECT_THAT(names(6), ElementsAre("h.0.attn.residual"));
}

// A weight used twice in the middle: its uses stay on one stage. The table's first and last use may
// part, since the first and the last stage exchange their gradients.
TEST(GraphTest, UsesOfATiedParameterInTheMiddleStayTogether) {
  Graph graph = Small();
  graph.parameters.pop_back();
  graph.edges.insert(graph.edges.begin() + 2, {"z", 4});
  graph.ops = {{OpKind::kEmbedding, "embedding", 0, {}, 0, {0, 1}, 0, 0},
               {OpKind::kLinear, "w", 0, {0}, 1, {2}, 0, 0},
               {OpKind::kLinear, "w again", 0, {1}, 2, {2}, 0, 0},
               {OpKind::kLinear, "head", 1, {2}, 3, {0}, 0, 0},
               {OpKind::kSoftmaxCrossEntropy, "loss", 1, {3}, -1, {}, 0, 0}};
  ASSERT_TRUE(graph.Validate().ok()) << graph.Validate();
  EXPECT_THAT(graph.CutPoints(), ElementsAre(1, 3));
}

TEST(GraphTest, UsesFollowTheOperators) {
  const Graph tied = Gpt2(2, true);
  EXPECT_THAT(tied.TiedParameters(), ElementsAre(0));
  const int cut = tied.BlockPoints()[0];
  const OpRange first{0, cut}, second{cut, static_cast<int>(tied.ops.size())};
  const std::vector<ParameterUse> uses = tied.Uses(second);
  ASSERT_EQ(uses.size(), 12 + 2 + 1);
  EXPECT_EQ(uses.back().parameter, 0);
  EXPECT_EQ(tied.ops[uses.back().op].name, "head");
  EXPECT_EQ(tied.ParametersOf(first).size(), 2 + 12);
  EXPECT_EQ(tied.ParametersOf(second).size(), 12 + 2 + 1);
  EXPECT_EQ(tied.ParametersOf(second).front(), 0);
  EXPECT_EQ(tied.Uses({0, static_cast<int>(tied.ops.size())}).size(), tied.parameters.size() + 1);

  const Graph untied = Gpt2(2, false);
  EXPECT_THAT(untied.TiedParameters(), ElementsAre());
  EXPECT_EQ(untied.ParameterCount(), tied.ParameterCount() + 11 * 8);
}

}  // namespace
}  // namespace longhaul::model
