#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "model/config_reader.h"
#include "model/limits.h"
#include "model/rotary_limits.h"

namespace longhaul::model {
namespace {

constexpr double kThetaMin = 1 + 1e-9;
constexpr double kFrequencyFactorMin = 1e-6;

// What transformers 4 keeps in "rope_scaling" and 5 in "rope_parameters", `section`.
absl::Status ReadRotary(const Json& object, const std::string& section, ModelSpec& spec) {
  ConfigReader reader(object, section + ".");
  LH_RETURN_IF_ERROR(reader.Only("rope_type", {"llama3", "default"}));
  LH_RETURN_IF_ERROR(reader.Only("type", {"llama3", "default"}));
  LH_RETURN_IF_ERROR(reader.Only("partial_rotary_factor", {1}));
  LH_ASSIGN_OR_RETURN(spec.rope_theta,
                      reader.Real("rope_theta", kThetaMin, kRotaryThetaMax, spec.rope_theta));
  const Json* type = reader.Find("rope_type");
  if (type == nullptr) type = reader.Find("type");
  if (type == nullptr) return reader.Refuse("rope_type", "given");
  if (*type == "default") return reader.Finish();
  RotaryScaling& scaling = spec.rope_scaling;
  LH_ASSIGN_OR_RETURN(scaling.factor, reader.Real("factor", 1, kRotaryFactorMax));
  LH_ASSIGN_OR_RETURN(scaling.low_frequency_factor,
                      reader.Real("low_freq_factor", kFrequencyFactorMin, kRotaryFactorMax));
  LH_ASSIGN_OR_RETURN(scaling.high_frequency_factor,
                      reader.Real("high_freq_factor", kFrequencyFactorMin, kRotaryFactorMax));
  LH_ASSIGN_OR_RETURN(scaling.original_context,
                      reader.Whole("original_max_position_embeddings", kContextMax));
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
    return reader.Refuse("high_freq_factor", "above low_freq_factor");
  }
  return reader.Finish();
}

absl::Status ReadRotaries(const Json& config, ConfigReader& reader, ModelSpec& spec) {
  LH_ASSIGN_OR_RETURN(spec.rope_theta, reader.Real("rope_theta", kThetaMin, kRotaryThetaMax, 1e4));
  const ModelSpec by_key = spec;
  const Json* const old_spelling = reader.Find("rope_scaling");
  const Json* const new_spelling = reader.Find("rope_parameters");
  for (const auto& [section, object] :
       {std::pair("rope_scaling", old_spelling), std::pair("rope_parameters", new_spelling)}) {
    if (object == nullptr) continue;
    if (!object->is_object()) return reader.Refuse(section, "an object");
    spec.rope_scaling = by_key.rope_scaling;
    spec.rope_theta = by_key.rope_theta;
    LH_RETURN_IF_ERROR(ReadRotary(*object, section, spec));
    if (config.contains("rope_theta") && spec.rope_theta != by_key.rope_theta) {
      return reader.Refuse("rope_theta",
                           absl::StrCat("as '", section, ".rope_theta' (", spec.rope_theta, ")"));
    }
  }
  if (old_spelling == nullptr || new_spelling == nullptr) return absl::OkStatus();
  ModelSpec other = by_key;
  LH_RETURN_IF_ERROR(ReadRotary(*old_spelling, "rope_scaling", other));
  if (other == spec) return absl::OkStatus();
  return reader.Refuse("rope_scaling", "the same as 'rope_parameters'");
}

absl::Status ReadSizes(ConfigReader& reader, bool qwen2, ModelSpec& spec) {
  LH_ASSIGN_OR_RETURN(spec.layers, reader.Whole("num_hidden_layers", kLayersMax));
  LH_ASSIGN_OR_RETURN(spec.hidden, reader.Whole("hidden_size", kHiddenMax));
  LH_ASSIGN_OR_RETURN(spec.heads, reader.Whole("num_attention_heads", kHiddenMax));
  LH_ASSIGN_OR_RETURN(spec.ffn, reader.Whole("intermediate_size", kFeedForwardMax));
  LH_ASSIGN_OR_RETURN(spec.context, reader.Whole("max_position_embeddings", kContextMax));
  LH_ASSIGN_OR_RETURN(spec.vocab, reader.Whole("vocab_size", kVocabMax));
  if (spec.hidden % spec.heads != 0) {
    return reader.Refuse("num_attention_heads",
                         absl::StrCat("a divisor of hidden_size (", spec.hidden, ")"));
  }
  const int64_t kv_heads_default = qwen2 ? 32 : spec.heads;  // as in transformers
  LH_ASSIGN_OR_RETURN(spec.kv_heads,
                      reader.WholeOr("num_key_value_heads", kHiddenMax, kv_heads_default));
  if (spec.heads % spec.kv_heads != 0) {
    return reader.Refuse("num_key_value_heads",
                         absl::StrCat("a divisor of num_attention_heads (", spec.heads, ")"));
  }
  const int64_t head_width = spec.hidden / spec.heads;
  LH_ASSIGN_OR_RETURN(const int64_t head_dim, reader.WholeOr("head_dim", kHiddenMax, head_width));
  if (head_width % 2 != 0) {
    return reader.Refuse("num_attention_heads",
                         absl::StrCat("such that hidden_size (", spec.hidden,
                                      ") gives each head an even width, since rotary embedding "
                                      "turns pairs"));
  }
  if (head_dim == head_width) return absl::OkStatus();
  return reader.Refuse("head_dim",
                       absl::StrCat("hidden_size / num_attention_heads (", head_width, ")"));
}

// Every layer must attend to all tokens before.
absl::Status CheckAttention(ConfigReader& reader, bool qwen2) {
  if (!qwen2) return reader.Only("attention_bias", {false});
  LH_RETURN_IF_ERROR(reader.Only("use_sliding_window", {false}));
  LH_RETURN_IF_ERROR(reader.Only("use_mrope", {false}));
  reader.Ignore({"sliding_window", "max_window_layers"});  // said to be out of use
  const Json* const types = reader.Find("layer_types");
  if (types == nullptr) return absl::OkStatus();
  const bool full =
      types->is_array() && std::all_of(types->begin(), types->end(),
                                       [](const Json& type) { return type == "full_attention"; });
  return full ? absl::OkStatus() : reader.Refuse("layer_types", "a list of \"full_attention\"");
}

}  // namespace

absl::StatusOr<ModelSpec> SpecOfLlamaConfig(const Json& config, bool qwen2) {
  ConfigReader reader(config);
  ModelSpec spec;
  spec.family = "llama";
  spec.qkv_bias = qwen2;
  LH_RETURN_IF_ERROR(ReadSizes(reader, qwen2, spec));
  LH_ASSIGN_OR_RETURN(spec.norm_epsilon, reader.Real("rms_norm_eps", 1e-30, 0.5, 1e-6));
  LH_ASSIGN_OR_RETURN(spec.tied, reader.FlagOr("tie_word_embeddings", false));
  LH_RETURN_IF_ERROR(reader.Only("hidden_act", {"silu", "swish"}));
  LH_RETURN_IF_ERROR(reader.Only("mlp_bias", {false}));
  LH_RETURN_IF_ERROR(reader.Only("pretraining_tp", {1}));
  LH_RETURN_IF_ERROR(reader.Only("partial_rotary_factor", {1}));
  LH_RETURN_IF_ERROR(CheckAttention(reader, qwen2));
  LH_RETURN_IF_ERROR(ReadRotaries(config, reader, spec));
  IgnoreCommonKeys(reader);
  reader.Ignore({"attention_dropout"});
  LH_RETURN_IF_ERROR(reader.Finish());
  return spec;
}

nlohmann::ordered_json LlamaConfig(const ModelSpec& spec) {
  using OrderedJson = nlohmann::ordered_json;
  const auto graph = BuildGraph(spec);
  LH_CHECK(graph.ok(), graph.status().ToString());
  const auto wide = std::find_if(
      graph->parameters.begin(), graph->parameters.end(),
      [](const Parameter& parameter) { return parameter.name == "layers.0.mlp.gate_up.weight"; });
  OrderedJson config = {
      {"architectures", {spec.qkv_bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", spec.qkv_bias ? "qwen2" : "llama"},
      {"vocab_size", spec.vocab},
      {"max_position_embeddings", spec.context},
      {"hidden_size", spec.hidden},
      {"intermediate_size", wide->shape[0] / 2},
      {"num_hidden_layers", spec.layers},
      {"num_attention_heads", spec.heads},
      {"num_key_value_heads", spec.KvHeads()},
      {"hidden_act", "silu"},
      {"rms_norm_eps", spec.norm_epsilon},
      {"rope_theta", spec.rope_theta},
      {"rope_scaling", nullptr},
      {"attention_dropout", 0.0},
      {"tie_word_embeddings", spec.tied},
      {"bos_token_id", nullptr},
      {"eos_token_id", nullptr},
      {"torch_dtype", "float32"}};
  if (spec.qkv_bias) config["use_sliding_window"] = false;
  if (!spec.qkv_bias) config["attention_bias"] = false;
  if (spec.rope_scaling.factor == 1) return config;
  config["rope_scaling"] = {
      {"rope_type", "llama3"},
      {"factor", spec.rope_scaling.factor},
      {"low_freq_factor", spec.rope_scaling.low_frequency_factor},
      {"high_freq_factor", spec.rope_scaling.high_frequency_factor},
      {"original_max_position_embeddings", spec.rope_scaling.original_context}};
  return config;
}

}  // namespace longhaul::model
