// For tests: models and batches for stages.
#ifndef LONGHAUL_COMPUTE_STAGE_TESTING_TEST_GRAPHS_H_
#define LONGHAUL_COMPUTE_STAGE_TESTING_TEST_GRAPHS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/rng.h"
#include "compute/stage/testing/in_process_pipeline.h"
#include "model/family.h"
#include "model/graph_json.h"

namespace longhaul::compute {

inline constexpr uint64_t kSeed = 7;
// Three sequences make more than one tile of 192 rows, and attention takes more than one block.
inline constexpr int64_t kLongContext = 70;

inline model::Graph Gpt2(int64_t layers, int64_t hidden, int64_t heads, bool tied,
                         int64_t context = 5) {
  model::ModelSpec spec;
  spec.layers = layers;
  spec.hidden = hidden;
  spec.heads = heads;
  spec.context = context;
  spec.vocab = 11;
  spec.tied = tied;
  auto graph = model::BuildGraph(spec);
  LH_CHECK(graph.ok(), graph.status().ToString());
  return *std::move(graph);
}

inline model::OpRange Whole(const model::Graph& graph) {
  return {0, static_cast<int>(graph.ops.size())};
}

inline std::vector<TestBatch> Batches(const model::Graph& graph, int count, int64_t micro_batch) {
  std::vector<TestBatch> batches(count);
  uint64_t index = 0;
  for (TestBatch& batch : batches) {
    for (int64_t row = 0; row < micro_batch * graph.context; ++row) {
      const auto bits = RandomBits(kSeed, RandomStream::kBatch, 0, 0, index++);
      batch.tokens.push_back(static_cast<int32_t>(bits[0] % graph.vocab));
      batch.targets.push_back(static_cast<int32_t>(bits[1] % graph.vocab));
    }
  }
  return batches;
}

// Every kind of operator, and an edge that skips most of the model: the sum in front of the head
// reads the embedding again. Odd sizes, so that edges side by side need padding; 2 query heads and
// 1 key-value head of 6 columns.
inline constexpr char kEveryKind[] = R"({"schema": 1, "vocab": 11, "context": 5, "layers": 2,
 "parameters": [
  {"name": "table", "shape": [11, 12], "init": "normal", "standard_deviation": 0.05,
   "decays": true},
  {"name": "norm", "shape": [12], "init": "ones", "decays": false},
  {"name": "qkv", "shape": [24, 12], "init": "normal", "standard_deviation": 0.05, "decays": true},
  {"name": "proj", "shape": [12, 12], "init": "normal", "standard_deviation": 0.05, "decays": true},
  {"name": "up", "shape": [14, 12], "init": "normal", "standard_deviation": 0.05, "decays": true},
  {"name": "down", "shape": [12, 7], "init": "normal", "standard_deviation": 0.05, "decays": true},
  {"name": "ln.weight", "shape": [12], "init": "ones", "decays": false},
  {"name": "ln.bias", "shape": [12], "init": "zeros", "decays": false}],
 "ops": [
  {"op": "embedding", "name": "x", "layer": 0, "parameters": ["table"], "width": 12},
  {"op": "dropout", "name": "drop", "layer": 0, "inputs": ["x"], "width": 12, "probability": 0.3},
  {"op": "rms_norm", "name": "rms", "layer": 0, "inputs": ["drop"], "parameters": ["norm"],
   "width": 12, "epsilon": 1e-5},
  {"op": "linear", "name": "packed", "layer": 0, "inputs": ["rms"], "parameters": ["qkv"],
   "width": 24},
  {"op": "rotary", "name": "turned", "layer": 0, "inputs": ["packed"], "width": 24, "heads": 2,
   "kv_heads": 1, "theta": 100},
  {"op": "causal_attention", "name": "attended", "layer": 0, "inputs": ["turned"], "width": 12,
   "heads": 2, "kv_heads": 1},
  {"op": "linear", "name": "projected", "layer": 0, "inputs": ["attended"], "parameters": ["proj"],
   "width": 12},
  {"op": "add", "name": "middle", "layer": 0, "inputs": ["drop", "projected"], "width": 12},
  {"op": "linear", "name": "wide", "layer": 1, "inputs": ["middle"], "parameters": ["up"],
   "width": 14},
  {"op": "swiglu", "name": "gated", "layer": 1, "inputs": ["wide"], "width": 7},
  {"op": "linear", "name": "narrow", "layer": 1, "inputs": ["gated"], "parameters": ["down"],
   "width": 12},
  {"op": "gelu", "name": "bent", "layer": 1, "inputs": ["narrow"], "width": 12},
  {"op": "add", "name": "twice", "layer": 1, "inputs": ["bent", "middle"], "width": 12},
  {"op": "add", "name": "sum", "layer": 2, "inputs": ["twice", "x"], "width": 12},
  {"op": "layer_norm", "name": "ln", "layer": 2, "inputs": ["sum"],
   "parameters": ["ln.weight", "ln.bias"], "width": 12, "epsilon": 1e-5},
  {"op": "linear", "name": "logits", "layer": 2, "inputs": ["ln"], "parameters": ["table"],
   "width": 11},
  {"op": "softmax_cross_entropy", "name": "loss", "layer": 2, "inputs": ["logits"]}]})";

inline model::Graph EveryKindGraph(bool tied) {
  std::string json = kEveryKind;
  if (!tied) {
    absl::StrReplaceAll({{R"("inputs": ["ln"], "parameters": ["table"])",
                          R"("inputs": ["ln"], "parameters": ["head"])"},
                         {R"("parameters": [
)",
                          R"("parameters": [
  {"name": "head", "shape": [11, 12], "init": "normal", "standard_deviation": 0.05, "decays": true},
)"}},
                        &json);
  }
  auto graph = model::GraphFromJson(json);
  LH_CHECK(graph.ok(), graph.status().ToString());
  return *std::move(graph);
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_TESTING_TEST_GRAPHS_H_
