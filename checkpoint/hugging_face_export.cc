#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/gpt2_layout.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/safetensors.h"
#include "nlohmann/json.hpp"

namespace longhaul::checkpoint {
namespace {

std::string ConfigJson(const model::ModelSpec& spec) {
  using OrderedJson = nlohmann::ordered_json;
  const OrderedJson inner_width = spec.ffn > 0 ? OrderedJson(spec.ffn) : OrderedJson(nullptr);
  const OrderedJson config = {{"architectures", {kGpt2Architecture}},
                              {"model_type", kGpt2ModelType},
                              {"vocab_size", spec.vocab},
                              {"n_positions", spec.context},
                              {"n_ctx", spec.context},
                              {"n_embd", spec.hidden},
                              {"n_layer", spec.layers},
                              {"n_head", spec.heads},
                              {"n_inner", inner_width},
                              {"activation_function", "gelu_new"},
                              {"layer_norm_epsilon", spec.norm_epsilon},
                              {"scale_attn_weights", true},
                              {"resid_pdrop", spec.dropout},
                              {"embd_pdrop", spec.dropout},
                              {"attn_pdrop", 0.0},
                              {"tie_word_embeddings", spec.tied},
                              {"bos_token_id", nullptr},
                              {"eos_token_id", nullptr},
                              {"torch_dtype", "float32"}};
  return config.dump(2) + "\n";
}

absl::Status CheckSizes(const ModelWeights& weights, const model::Graph& graph) {
  if (weights.parameters.size() != graph.parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", graph.parameters.size(),
                                                   " parameters, not ", weights.parameters.size()));
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const model::Parameter& parameter = graph.parameters[i];
    if (static_cast<int64_t>(weights.parameters[i].size()) != parameter.elements()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name, "' has ",
                                                     parameter.elements(), " elements, not ",
                                                     weights.parameters[i].size()));
    }
  }
  return absl::OkStatus();
}

absl::string_view BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string Weights(const ModelWeights& weights, const model::Graph& graph) {
  std::vector<std::vector<float>> transposed;
  transposed.reserve(graph.parameters.size());  // views point into its elements
  std::vector<TensorView> tensors;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const Gpt2Tensor tensor = Gpt2TensorOf(graph.parameters[i]);
    const std::vector<float>* values = &weights.parameters[i];
    if (tensor.transposed) {
      std::vector<float>& copy = transposed.emplace_back(values->size());
      Transpose(*values, tensor.shape[1], tensor.shape[0], absl::MakeSpan(copy));
      values = &copy;
    }
    tensors.push_back({tensor.name, "F32", tensor.shape, BytesOf(*values)});
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return WriteSafetensors(tensors, {{"format", "pt"}});
}

}  // namespace

absl::StatusOr<HuggingFaceFiles> ExportHuggingFace(const ModelWeights& weights) {
  if (!weights.spec.graph.empty()) {
    return absl::InvalidArgumentError(
        "a model given as a graph has no layout of Hugging Face's, so it cannot be exported");
  }
  if (weights.spec.family != "gpt2") {
    return absl::InvalidArgumentError(
        absl::StrCat("the family '", weights.spec.family, "' cannot be exported; gpt2 can"));
  }
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  LH_RETURN_IF_ERROR(CheckSizes(weights, graph));
  return HuggingFaceFiles{ConfigJson(weights.spec), Weights(weights, graph)};
}

}  // namespace longhaul::checkpoint
