// Model families: functions from a few hyper-parameters to a graph.
#ifndef LONGHAUL_MODEL_FAMILY_H_
#define LONGHAUL_MODEL_FAMILY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
  bool tied = true;  // head shares the token embedding
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

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_FAMILY_H_
