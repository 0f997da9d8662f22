#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "checkpoint/gpt2_layout.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/safetensors.h"

namespace longhaul::checkpoint {
namespace {

constexpr size_t kConfigBytesMax = 1 << 20;
constexpr int64_t kSizeMax = std::numeric_limits<int64_t>::max();

// Keys that say nothing about what the model computes.
constexpr std::array<absl::string_view, 16> kIgnoredKeys = {"_name_or_path",
                                                            "architectures",
                                                            "attn_pdrop",
                                                            "bos_token_id",
                                                            "dtype",
                                                            "embd_pdrop",
                                                            "eos_token_id",
                                                            "gradient_checkpointing",
                                                            "initializer_range",
                                                            "pad_token_id",
                                                            "reorder_and_upcast_attn",
                                                            "resid_pdrop",
                                                            "task_specific_params",
                                                            "torch_dtype",
                                                            "transformers_version",
                                                            "use_cache"};
// Keys of the sizes and of what SupportedValues lists.
constexpr std::array<absl::string_view, 7> kSizeKeys = {
    "vocab_size", "n_positions", "n_ctx", "n_embd", "n_layer", "n_head", "tie_word_embeddings"};

// A key with the values under which the model computes what ours does.
struct Supported {
  const char* key;
  std::vector<Json> values;
};

std::vector<Supported> SupportedValues(int64_t hidden) {
  return {{"model_type", {kGpt2ModelType}},
          {"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
          {"layer_norm_epsilon", {kGpt2Epsilon}},
          {"n_inner", {nullptr, 4 * hidden}},
          {"scale_attn_weights", {true}},
          {"scale_attn_by_inverse_layer_idx", {false}},
          {"add_cross_attention", {false}}};
}

absl::Status CheckKnownKeys(const Json& config, const std::vector<Supported>& supported) {
  for (const auto& [key, value] : config.items()) {
    const std::string& name = key;
    const auto is_name = [&name](absl::string_view known) { return known == name; };
    const bool known = absl::StartsWith(name, "summary_") ||
                       std::any_of(kIgnoredKeys.begin(), kIgnoredKeys.end(), is_name) ||
                       std::any_of(kSizeKeys.begin(), kSizeKeys.end(), is_name) ||
                       std::any_of(supported.begin(), supported.end(),
                                   [&](const Supported& s) { return is_name(s.key); });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("the key '", name, "' is not one of those that GPT-2 here supports"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const Json& config, const std::vector<Supported>& supported) {
  for (const Supported& s : supported) {
    const auto found = config.find(s.key);
    if (found == config.end()) continue;  // these are the defaults of GPT-2
    if (std::find(s.values.begin(), s.values.end(), *found) != s.values.end()) continue;
    std::vector<std::string> values;
    for (const Json& value : s.values) values.push_back(value.dump());
    return absl::InvalidArgumentError(absl::StrCat(
        "'", s.key, "' must be ", absl::StrJoin(values, " or "), ", not ", found->dump()));
  }
  return absl::OkStatus();
}

absl::StatusOr<model::ModelSpec> SpecFromConfig(absl::string_view json) {
  LH_ASSIGN_OR_RETURN(const Json config, ParseJson(json, kConfigBytesMax));
  model::ModelSpec spec;
  spec.family = "gpt2";
  LH_RETURN_IF_ERROR(JsonText(config, "model_type").status());
  LH_ASSIGN_OR_RETURN(spec.layers, JsonWhole(config, "n_layer", 1, kSizeMax));
  LH_ASSIGN_OR_RETURN(spec.hidden, JsonWhole(config, "n_embd", 1, kSizeMax / 4));
  LH_ASSIGN_OR_RETURN(spec.heads, JsonWhole(config, "n_head", 1, kSizeMax));
  LH_ASSIGN_OR_RETURN(spec.context, JsonWhole(config, "n_positions", 1, kSizeMax));
  LH_ASSIGN_OR_RETURN(spec.vocab, JsonWhole(config, "vocab_size", 1, kSizeMax));
  if (config.contains("n_ctx")) {
    LH_RETURN_IF_ERROR(JsonWhole(config, "n_ctx", spec.context, spec.context).status());
  }
  if (config.contains("tie_word_embeddings")) {
    LH_ASSIGN_OR_RETURN(spec.tied, JsonFlag(config, "tie_word_embeddings"));
  }
  const std::vector<Supported> supported = SupportedValues(spec.hidden);
  LH_RETURN_IF_ERROR(CheckKnownKeys(config, supported));
  LH_RETURN_IF_ERROR(CheckValues(config, supported));
  return spec;
}

absl::StatusOr<std::vector<float>> ReadTensor(const SafetensorsFile& file,
                                              const model::Parameter& parameter) {
  const Gpt2Tensor expected = Gpt2TensorOf(parameter);
  const TensorView* const tensor = file.Find(expected.name);
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("lacks the tensor '", expected.name, "'"));
  }
  if (tensor->dtype != "F32" || tensor->shape != expected.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", expected.name, "' is ", tensor->dtype, " [", absl::StrJoin(tensor->shape, ", "),
        "], not F32 [", absl::StrJoin(expected.shape, ", "), "] as the configuration says"));
  }
  std::vector<float> values(tensor->bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  const auto bad = std::find_if_not(values.begin(), values.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", expected.name, "' holds ", *bad,
                                                   " as element ", bad - values.begin(),
                                                   ": the training that wrote it diverged"));
  }
  if (!expected.transposed) return values;
  std::vector<float> ours(values.size());
  Transpose(values, expected.shape[0], expected.shape[1], absl::MakeSpan(ours));
  return ours;
}

absl::Status ReadWeights(const std::string& bytes, const model::Graph& graph,
                         ModelWeights& weights) {
  LH_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  for (const model::Parameter& parameter : graph.parameters) {
    LH_ASSIGN_OR_RETURN(std::vector<float> values, ReadTensor(file, parameter));
    weights.parameters.push_back(std::move(values));
  }
  if (file.tensors.size() == graph.parameters.size()) return absl::OkStatus();
  for (const TensorView& tensor : file.tensors) {
    const bool known =
        std::any_of(graph.parameters.begin(), graph.parameters.end(),
                    [&](const model::Parameter& p) { return Gpt2TensorOf(p).name == tensor.name; });
    if (known) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("holds the tensor '", tensor.name, "', which the configuration has not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelWeights> ImportHuggingFace(const std::string& directory) {
  const std::string config_path = absl::StrCat(directory, "/", kConfigFile);
  LH_ASSIGN_OR_RETURN(const std::string config, ReadFile(config_path, kConfigBytesMax));
  ModelWeights weights;
  auto spec = SpecFromConfig(config);
  if (!spec.ok()) return Annotate(spec.status(), config_path);
  weights.spec = *std::move(spec);
  const auto graph = model::BuildGraph(weights.spec);
  if (!graph.ok()) return Annotate(graph.status(), config_path);

  const std::string weights_path = absl::StrCat(directory, "/", kWeightsFile);
  LH_ASSIGN_OR_RETURN(const std::string bytes,
                      ReadFile(weights_path, std::numeric_limits<uint64_t>::max()));
  LH_RETURN_IF_ERROR(Annotate(ReadWeights(bytes, *graph, weights), weights_path));
  return weights;
}

}  // namespace longhaul::checkpoint
