// Model families: functions from a few hyper-parameters to a graph.
#ifndef LONGHAUL_MODEL_FAMILY_H_
#define LONGHAUL_MODEL_FAMILY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/graph.h"

namespace longhaul::model {

// The `model:` part of a run's file.
struct ModelSpec {
  std::string family = "gpt2";
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t context = 0;
  int64_t vocab = 0;
  bool tied = true;       // head shares the token embedding
  int64_t kv_heads = 0;   // llama; 0: as many as heads
  int64_t ffn = 0;        // 0: the family's usual width
  bool qkv_bias = false;  // llama: as Qwen2
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;        // llama
  RotaryScaling rope_scaling = {};  // llama
  double dropout = 0;               // after the embedding and on both residual branches
  // A user's own model instead of a family, as JSON (graph_json.h); empty otherwise. The keys above
  // then repeat what the graph says, for those that read them: see SpecOfGraph.
  std::string graph = "";

  int64_t KvHeads() const { return kv_heads > 0 ? kv_heads : heads; }
  bool operator==(const ModelSpec&) const = default;
};

// Names of the families, for messages.
std::vector<std::string> FamilyNames();

// Builds and validates. InvalidArgument names the key ("model.heads") and the remedy.
absl::StatusOr<Graph> BuildGraph(const ModelSpec& spec);

// GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, GELU (tanh), biases; residual
// projections start with standard deviation 0.02 / sqrt(2 * layers). Parameter names: "wte", "wpe",
// "h.N.ln_1.weight", "h.N.attn.qkv.weight", "h.N.attn.proj.weight", "h.N.mlp.fc.weight",
// "h.N.mlp.proj.weight", "ln_f.weight", and ".bias" of each; "head.weight" when not tied.
absl::StatusOr<Graph> BuildGpt2(const ModelSpec& spec);

// Llama (Touvron et al. 2023; Grattafiori et al. 2024): RMSNorm, rotary positions, grouped-query
// attention, SwiGLU, no biases but, where asked for, those of q, k and v (Qwen2). Parameter names:
// "embed", "layers.N.input_norm.weight", "layers.N.attn.qkv.weight" (rows q | k | v; and ".bias"),
// "layers.N.attn.proj.weight", "layers.N.post_norm.weight", "layers.N.mlp.gate_up.weight" (rows
// gate | up), "layers.N.mlp.down.weight", "norm.weight"; "head.weight" when not tied.
absl::StatusOr<Graph> BuildLlama(const ModelSpec& spec);

// The spec of a user's graph, given as JSON: checks it, keeps it in one line, and fills in the keys
// that others read (layers, hidden: the embedding's width, heads: 1, context, vocab).
// InvalidArgument says what is wrong with the graph.
absl::StatusOr<ModelSpec> SpecOfGraph(absl::string_view json);
// Whether the keys of `spec` repeat what its graph, built, says.
bool Repeats(const ModelSpec& spec, const Graph& graph);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_FAMILY_H_
