#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/family.h"
#include "model/limits.h"

namespace longhaul::model {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kStandardDeviation = 0.02;

absl::Status CheckBound(const char* key, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model.", key, ": ", value, " is out of range; it must be from 1 to ", max));
}

absl::Status CheckSpec(const ModelSpec& spec) {
  LH_RETURN_IF_ERROR(CheckBound("layers", spec.layers, kLayersMax));
  LH_RETURN_IF_ERROR(CheckBound("hidden", spec.hidden, kHiddenMax));
  LH_RETURN_IF_ERROR(CheckBound("heads", spec.heads, kHiddenMax));
  LH_RETURN_IF_ERROR(CheckBound("context", spec.context, kContextMax));
  LH_RETURN_IF_ERROR(CheckBound("vocab", spec.vocab, kVocabMax));
  if (spec.hidden % spec.heads == 0) return absl::OkStatus();
  int64_t below = spec.heads, above = spec.heads;
  while (spec.hidden % below != 0) --below;
  while (above <= spec.hidden && spec.hidden % above != 0) ++above;
  const std::string remedy =
      above <= spec.hidden ? absl::StrCat(below, " or ", above) : absl::StrCat(below);
  return absl::InvalidArgumentError(absl::StrCat("model.heads: ", spec.heads,
                                                 " does not divide model.hidden ", spec.hidden,
                                                 "; use ", remedy, ", or another model.hidden"));
}

// Appends operators one after another; each method returns the edge that its operator makes. Edges
// and operators share their names.
class Builder {
 public:
  explicit Builder(const ModelSpec& spec) : hidden_(spec.hidden), heads_(spec.heads) {
    graph_.family = spec.family;
    graph_.vocab = spec.vocab;
    graph_.context = spec.context;
    graph_.layers = static_cast<int>(spec.layers);
  }

  void SetLayer(int layer) { layer_ = layer; }
  Graph Finish() { return std::move(graph_); }

  int AddMatrix(const std::string& name, int64_t rows, int64_t columns, double deviation) {
    return AddParameter({name, {rows, columns}, {InitKind::kNormal, deviation}, true});
  }

  int Embedding(int table, int positions) {
    return AddOp(OpKind::kEmbedding, "embedding", {}, hidden_, {table, positions});
  }

  int LayerNorm(const std::string& name, int input) {
    const int weight = AddVector(name + ".weight", hidden_, InitKind::kOnes);
    const int bias = AddVector(name + ".bias", hidden_, InitKind::kZeros);
    const int output = AddOp(OpKind::kLayerNorm, name, {input}, hidden_, {weight, bias});
    graph_.ops.back().epsilon = kEpsilon;
    return output;
  }

  int Linear(const std::string& name, int input, int64_t out, double deviation) {
    const int64_t in = graph_.edges[input].width;
    const int weight = AddMatrix(name + ".weight", out, in, deviation);
    const int bias = AddVector(name + ".bias", out, InitKind::kZeros);
    return AddOp(OpKind::kLinear, name, {input}, out, {weight, bias});
  }

  int Head(int input, int weight) {
    return AddOp(OpKind::kLinear, "head", {input}, graph_.vocab, {weight});
  }

  int Gelu(const std::string& name, int input) {
    return AddOp(OpKind::kGelu, name, {input}, graph_.edges[input].width, {});
  }

  int Attention(const std::string& name, int qkv) {
    const int output = AddOp(OpKind::kCausalAttention, name, {qkv}, hidden_, {});
    graph_.ops.back().heads = graph_.ops.back().kv_heads = heads_;
    return output;
  }

  int Add(const std::string& name, int a, int b) {
    return AddOp(OpKind::kAdd, name, {a, b}, hidden_, {});
  }

  void Loss(int logits) {
    graph_.ops.push_back({OpKind::kSoftmaxCrossEntropy, "loss", layer_, {logits}, -1, {}, 0, 0});
  }

 private:
  int AddParameter(Parameter parameter) {
    graph_.parameters.push_back(std::move(parameter));
    return static_cast<int>(graph_.parameters.size()) - 1;
  }

  int AddVector(const std::string& name, int64_t size, InitKind init) {
    return AddParameter({name, {size}, {init, 0}, false});
  }

  int AddOp(OpKind kind, const std::string& name, std::vector<int> inputs, int64_t width,
            std::vector<int> parameters) {
    graph_.edges.push_back({name, width});
    const int output = static_cast<int>(graph_.edges.size()) - 1;
    graph_.ops.push_back(
        {kind, name, layer_, std::move(inputs), output, std::move(parameters), 0, 0});
    return output;
  }

  const int64_t hidden_, heads_;
  int layer_ = 0;
  Graph graph_;
};

// One pre-norm block; returns the edge of its output.
int AddBlock(Builder& builder, const ModelSpec& spec, int layer, int input) {
  const std::string name = absl::StrCat("h.", layer);
  const double residual_deviation =
      kStandardDeviation / std::sqrt(2.0 * static_cast<double>(spec.layers));
  builder.SetLayer(layer);

  const int normed = builder.LayerNorm(name + ".ln_1", input);
  const int qkv = builder.Linear(name + ".attn.qkv", normed, 3 * spec.hidden, kStandardDeviation);
  const int attended = builder.Attention(name + ".attn", qkv);
  const int projected =
      builder.Linear(name + ".attn.proj", attended, spec.hidden, residual_deviation);
  const int middle = builder.Add(name + ".attn.residual", input, projected);

  const int middle_normed = builder.LayerNorm(name + ".ln_2", middle);
  const int wide =
      builder.Linear(name + ".mlp.fc", middle_normed, 4 * spec.hidden, kStandardDeviation);
  const int bent = builder.Gelu(name + ".mlp.gelu", wide);
  const int narrow = builder.Linear(name + ".mlp.proj", bent, spec.hidden, residual_deviation);
  return builder.Add(name + ".mlp.residual", middle, narrow);
}

}  // namespace

absl::StatusOr<Graph> BuildGpt2(const ModelSpec& spec) {
  LH_RETURN_IF_ERROR(CheckSpec(spec));
  Builder builder(spec);
  const int table = builder.AddMatrix("wte", spec.vocab, spec.hidden, kStandardDeviation);
  const int positions = builder.AddMatrix("wpe", spec.context, spec.hidden, kStandardDeviation);
  int edge = builder.Embedding(table, positions);
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
