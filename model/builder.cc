#include "model/builder.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/limits.h"

namespace longhaul::model {
namespace {

absl::Status CheckBound(const char* key, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.", key, ": ", value, " is out of range; it must be from ", min, " to ", max));
}

// `heads` divides `whole`; the remedy names the divisors on both sides.
absl::Status CheckDivides(const char* key, int64_t heads, const char* whole_key, int64_t whole) {
  if (whole % heads == 0) return absl::OkStatus();
  int64_t below = heads, above = heads;
  while (whole % below != 0) --below;
  while (above <= whole && whole % above != 0) ++above;
  const std::string remedy =
      above <= whole ? absl::StrCat(below, " or ", above) : absl::StrCat(below);
  return absl::InvalidArgumentError(
      absl::StrCat("model.", key, ": ", heads, " does not divide model.", whole_key, " ", whole,
                   "; use ", remedy, ", or another model.", whole_key));
}

}  // namespace

double ResidualDeviation(const ModelSpec& spec) {
  return kStandardDeviation / std::sqrt(2.0 * static_cast<double>(spec.layers));
}

absl::Status CheckFamilySpec(const ModelSpec& spec) {
  LH_RETURN_IF_ERROR(CheckBound("layers", spec.layers, 1, kLayersMax));
  LH_RETURN_IF_ERROR(CheckBound("hidden", spec.hidden, 1, kHiddenMax));
  LH_RETURN_IF_ERROR(CheckBound("heads", spec.heads, 1, kHiddenMax));
  LH_RETURN_IF_ERROR(CheckBound("context", spec.context, 1, kContextMax));
  LH_RETURN_IF_ERROR(CheckBound("vocab", spec.vocab, 1, kVocabMax));
  LH_RETURN_IF_ERROR(CheckBound("kv_heads", spec.kv_heads, 0, kHiddenMax));
  LH_RETURN_IF_ERROR(CheckBound("ffn", spec.ffn, 0, kFeedForwardMax));
  LH_RETURN_IF_ERROR(CheckDivides("heads", spec.heads, "hidden", spec.hidden));
  LH_RETURN_IF_ERROR(CheckDivides("kv_heads", spec.KvHeads(), "heads", spec.heads));
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.dropout: ", spec.dropout, " is out of range; it must be at least 0 and below 1"));
  }
  if (!(spec.norm_epsilon > 0 && spec.norm_epsilon < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("model.norm_epsilon: ", spec.norm_epsilon,
                                                   " is out of range; it must be between 0 and 1"));
  }
  return absl::OkStatus();
}

Builder::Builder(const ModelSpec& spec) : spec_(spec) {
  graph_.family = spec.family;
  graph_.vocab = spec.vocab;
  graph_.context = spec.context;
  graph_.layers = static_cast<int>(spec.layers);
}

int Builder::AddMatrix(const std::string& name, int64_t rows, int64_t columns, double deviation) {
  return AddParameter({name, {rows, columns}, {InitKind::kNormal, deviation}, true});
}

int Builder::Embedding(int table, int positions) {
  std::vector<int> parameters = {table};
  if (positions >= 0) parameters.push_back(positions);
  return AddOp(OpKind::kEmbedding, "embedding", {}, spec_.hidden, std::move(parameters));
}

int Builder::LayerNorm(const std::string& name, int input) {
  const int weight = AddVector(name + ".weight", spec_.hidden, InitKind::kOnes);
  const int bias = AddVector(name + ".bias", spec_.hidden, InitKind::kZeros);
  const int output = AddOp(OpKind::kLayerNorm, name, {input}, spec_.hidden, {weight, bias});
  graph_.ops.back().epsilon = spec_.norm_epsilon;
  return output;
}

int Builder::RmsNorm(const std::string& name, int input) {
  const int weight = AddVector(name + ".weight", spec_.hidden, InitKind::kOnes);
  const int output = AddOp(OpKind::kRmsNorm, name, {input}, spec_.hidden, {weight});
  graph_.ops.back().epsilon = spec_.norm_epsilon;
  return output;
}

int Builder::Linear(const std::string& name, int input, int64_t out, double deviation, bool bias) {
  const int64_t in = graph_.edges[input].width;
  std::vector<int> parameters = {AddMatrix(name + ".weight", out, in, deviation)};
  if (bias) parameters.push_back(AddVector(name + ".bias", out, InitKind::kZeros));
  return AddOp(OpKind::kLinear, name, {input}, out, std::move(parameters));
}

int Builder::Head(int input, int weight) {
  return AddOp(OpKind::kLinear, "head", {input}, graph_.vocab, {weight});
}

int Builder::Gelu(const std::string& name, int input) {
  return AddOp(OpKind::kGelu, name, {input}, graph_.edges[input].width, {});
}

int Builder::SwiGlu(const std::string& name, int input) {
  return AddOp(OpKind::kSwiGlu, name, {input}, graph_.edges[input].width / 2, {});
}

int Builder::Rotate(const std::string& name, int qkv) {
  const int output = AddOp(OpKind::kRotary, name, {qkv}, graph_.edges[qkv].width, {});
  graph_.ops.back().heads = spec_.heads;
  graph_.ops.back().kv_heads = spec_.KvHeads();
  graph_.ops.back().rotary = {spec_.rope_theta, spec_.rope_scaling};
  return output;
}

int Builder::Attention(const std::string& name, int qkv) {
  const int output = AddOp(OpKind::kCausalAttention, name, {qkv}, spec_.hidden, {});
  graph_.ops.back().heads = spec_.heads;
  graph_.ops.back().kv_heads = spec_.KvHeads();
  return output;
}

int Builder::Dropout(const std::string& name, int input) {
  if (spec_.dropout == 0) return input;
  const int output = AddOp(OpKind::kDropout, name, {input}, graph_.edges[input].width, {});
  graph_.ops.back().probability = spec_.dropout;
  return output;
}

int Builder::Add(const std::string& name, int a, int b) {
  return AddOp(OpKind::kAdd, name, {a, b}, spec_.hidden, {});
}

void Builder::Loss(int logits) {
  graph_.ops.push_back(
      {.kind = OpKind::kSoftmaxCrossEntropy, .name = "loss", .layer = layer_, .inputs = {logits}});
}

int Builder::AddParameter(Parameter parameter) {
  graph_.parameters.push_back(std::move(parameter));
  return static_cast<int>(graph_.parameters.size()) - 1;
}

int Builder::AddVector(const std::string& name, int64_t size, InitKind init) {
  return AddParameter({name, {size}, {init, 0}, false});
}

int Builder::AddOp(OpKind kind, const std::string& name, std::vector<int> inputs, int64_t width,
                   std::vector<int> parameters) {
  graph_.edges.push_back({name, width});
  const int output = static_cast<int>(graph_.edges.size()) - 1;
  graph_.ops.push_back({.kind = kind,
                        .name = name,
                        .layer = layer_,
                        .inputs = std::move(inputs),
                        .output = output,
                        .parameters = std::move(parameters)});
  return output;
}

}  // namespace longhaul::model
