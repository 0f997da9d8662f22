#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/builder.h"
#include "model/family.h"

namespace longhaul::model {
namespace {

// Two thirds of 4 * hidden, as three matrices have the parameters of two (Shazeer 2020), rounded
// up.
int64_t FeedForwardWidth(const ModelSpec& spec) {
  if (spec.ffn > 0) return spec.ffn;
  constexpr int64_t kMultiple = 64;
  return (8 * spec.hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

absl::Status CheckOwnKeys(const ModelSpec& spec) {
  const int64_t head_width = spec.hidden / spec.heads;
  if (head_width % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.heads: model.hidden ", spec.hidden, " / ", spec.heads, " gives heads of ", head_width,
      " columns, and rotary embedding turns pairs; choose model.heads so "
      "that a head has an even width"));
}

// One pre-norm block; returns the edge of its output.
int AddBlock(Builder& builder, const ModelSpec& spec, int layer, int input) {
  const std::string name = absl::StrCat("layers.", layer);
  const double residual = ResidualDeviation(spec);
  const int64_t head_width = spec.hidden / spec.heads;
  const int64_t qkv_width = (spec.heads + 2 * spec.KvHeads()) * head_width;
  builder.SetLayer(layer);

  const int normed = builder.RmsNorm(name + ".input_norm", input);
  const int qkv =
      builder.Linear(name + ".attn.qkv", normed, qkv_width, kStandardDeviation, spec.qkv_bias);
  const int turned = builder.Rotate(name + ".attn.rotary", qkv);
  const int attended = builder.Attention(name + ".attn", turned);
  const int projected = builder.Linear(name + ".attn.proj", attended, spec.hidden, residual, false);
  const int kept = builder.Dropout(name + ".attn.dropout", projected);
  const int middle = builder.Add(name + ".attn.residual", input, kept);

  const int middle_normed = builder.RmsNorm(name + ".post_norm", middle);
  const int gate_up = builder.Linear(name + ".mlp.gate_up", middle_normed,
                                     2 * FeedForwardWidth(spec), kStandardDeviation, false);
  const int gated = builder.SwiGlu(name + ".mlp.swiglu", gate_up);
  const int narrow = builder.Linear(name + ".mlp.down", gated, spec.hidden, residual, false);
  return builder.Add(name + ".mlp.residual", middle,
                     builder.Dropout(name + ".mlp.dropout", narrow));
}

}  // namespace

absl::StatusOr<Graph> BuildLlama(const ModelSpec& spec) {
  LH_RETURN_IF_ERROR(CheckFamilySpec(spec));
  LH_RETURN_IF_ERROR(CheckOwnKeys(spec));
  Builder builder(spec);
  const int table = builder.AddMatrix("embed", spec.vocab, spec.hidden, kStandardDeviation);
  int edge = builder.Dropout("embedding.dropout", builder.Embedding(table, /*positions=*/-1));
  for (int layer = 0; layer < spec.layers; ++layer) edge = AddBlock(builder, spec, layer, edge);
  builder.SetLayer(static_cast<int>(spec.layers));
  edge = builder.RmsNorm("norm", edge);
  const int head =
      spec.tied ? table
                : builder.AddMatrix("head.weight", spec.vocab, spec.hidden, kStandardDeviation);
  builder.Loss(builder.Head(edge, head));

  Graph graph = builder.Finish();
  LH_RETURN_IF_ERROR(graph.Validate());
  return graph;
}

}  // namespace longhaul::model
