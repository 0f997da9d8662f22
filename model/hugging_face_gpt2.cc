#include "base/status_macros.h"
#include "model/config_reader.h"
#include "model/limits.h"

namespace longhaul::model {

absl::StatusOr<ModelSpec> SpecOfGpt2Config(const Json& config) {
  ConfigReader reader(config);
  ModelSpec spec;
  spec.family = "gpt2";
  LH_ASSIGN_OR_RETURN(spec.layers, reader.Whole("n_layer", kLayersMax));
  LH_ASSIGN_OR_RETURN(spec.hidden, reader.Whole("n_embd", kHiddenMax));
  LH_ASSIGN_OR_RETURN(spec.heads, reader.Whole("n_head", kHiddenMax));
  LH_ASSIGN_OR_RETURN(spec.context, reader.Whole("n_positions", kContextMax));
  LH_ASSIGN_OR_RETURN(spec.vocab, reader.Whole("vocab_size", kVocabMax));
  LH_ASSIGN_OR_RETURN(spec.ffn, reader.WholeOr("n_inner", kFeedForwardMax, 0));
  if (spec.ffn == 4 * spec.hidden) spec.ffn = 0;
  LH_ASSIGN_OR_RETURN(spec.norm_epsilon, reader.Real("layer_norm_epsilon", 1e-30, 0.5, 1e-5));
  LH_ASSIGN_OR_RETURN(spec.tied, reader.FlagOr("tie_word_embeddings", true));
  LH_RETURN_IF_ERROR(reader.Only("n_ctx", {spec.context}));
  LH_RETURN_IF_ERROR(reader.Only("activation_function", {"gelu_new", "gelu_pytorch_tanh"}));
  LH_RETURN_IF_ERROR(reader.Only("scale_attn_weights", {true}));
  LH_RETURN_IF_ERROR(reader.Only("scale_attn_by_inverse_layer_idx", {false}));
  LH_RETURN_IF_ERROR(reader.Only("add_cross_attention", {false}));
  IgnoreCommonKeys(reader);
  reader.Ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "reorder_and_upcast_attn",
                 "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj"});
  LH_RETURN_IF_ERROR(reader.Finish());
  return spec;
}

nlohmann::ordered_json Gpt2Config(const ModelSpec& spec) {
  using OrderedJson = nlohmann::ordered_json;
  const OrderedJson inner_width = spec.ffn > 0 ? OrderedJson(spec.ffn) : OrderedJson(nullptr);
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
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
}

}  // namespace longhaul::model
