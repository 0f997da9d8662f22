#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/builder.h"
#include "model/family.h"

namespace longhaul::model {
namespace {

// Keys that say nothing to GPT-2 must not seem to.
absl::Status CheckOwnKeys(const ModelSpec& spec) {
  const auto wrong = [](const char* key, const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.", key, ": ", why, "; remove the key, or use model.family: llama"));
  };
  if (spec.KvHeads() != spec.heads) {
    return wrong("kv_heads", "gpt2 has as many heads of keys as of queries");
  }
  if (spec.qkv_bias) return wrong("qkv_bias", "gpt2 has a bias everywhere");
  if (spec.rope_theta != ModelSpec().rope_theta) {
    return wrong("rope_theta", "gpt2 learns its positions");
  }
  if (spec.rope_scaling != RotaryScaling()) {
    return wrong("rope_scaling", "gpt2 learns its positions");
  }
  return absl::OkStatus();
}

// One pre-norm block; returns the edge of its output.
int AddBlock(Builder& builder, const ModelSpec& spec, int layer, int input) {
  const std::string name = absl::StrCat("h.", layer);
  const double residual = ResidualDeviation(spec);
  const int64_t wide_width = spec.ffn > 0 ? spec.ffn : 4 * spec.hidden;
  builder.SetLayer(layer);

  const int normed = builder.LayerNorm(name + ".ln_1", input);
  const int qkv =
      builder.Linear(name + ".attn.qkv", normed, 3 * spec.hidden, kStandardDeviation, true);
  const int attended = builder.Attention(name + ".attn", qkv);
  const int projected = builder.Linear(name + ".attn.proj", attended, spec.hidden, residual, true);
  const int kept = builder.Dropout(name + ".attn.dropout", projected);
  const int middle = builder.Add(name + ".attn.residual", input, kept);

  const int middle_normed = builder.LayerNorm(name + ".ln_2", middle);
  const int wide =
      builder.Linear(name + ".mlp.fc", middle_normed, wide_width, kStandardDeviation, true);
  const int bent = builder.Gelu(name + ".mlp.gelu", wide);
  const int narrow = builder.Linear(name + ".mlp.proj", bent, spec.hidden, residual, true);
  return builder.Add(name + ".mlp.residual", middle,
                     builder.Dropout(name + ".mlp.dropout", narrow));
}

}  // namespace

absl::StatusOr<Graph> BuildGpt2(const ModelSpec& spec) {
  LH_RETURN_IF_ERROR(CheckFamilySpec(spec));
  LH_RETURN_IF_ERROR(CheckOwnKeys(spec));
  Builder builder(spec);
  const int table = builder.AddMatrix("wte", spec.vocab, spec.hidden, kStandardDeviation);
  const int positions = builder.AddMatrix("wpe", spec.context, spec.hidden, kStandardDeviation);
  int edge = builder.Dropout("embedding.dropout", builder.Embedding(table, positions));
  for (int layer = 0; layer < spec.layers; ++layer) edge = AddBlock(builder, spec, layer, edge);
  builder.SetLayer(static_cast<int>(spec.layers));
  edge = builder.LayerNorm("ln_f", edge);
  const int head =
      spec.tied ? table
                : builder.AddMatrix("head.weight", spec.vocab, spec.hidden, kStandardDeviation);
  builder.Loss(builder.Head(edge, head));

  Graph graph = builder.Finish();
  LH_RETURN_IF_ERROR(graph.Validate());
  return graph;
}

}  // namespace longhaul::model
