#include "model/hugging_face.h"

#include <functional>

#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::model {
namespace {

using testing::HasSubstr;

// As save_pretrained of transformers 5.24.0 writes them.
constexpr char kLlama[] = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 1, "dtype": "float32", "eos_token_id": 2,
    "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
    "intermediate_size": 96, "max_position_embeddings": 64, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "pad_token_id": null, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
    "rope_parameters": {"factor": 4.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 32, "rope_theta": 5000.0, "rope_type": "llama3"},
    "tie_word_embeddings": false, "transformers_version": "5.24.0", "use_cache": true,
    "vocab_size": 99})";
constexpr char kQwen2[] = R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": null, "dtype": "float32", "eos_token_id": null, "hidden_act": "silu",
    "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
    "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 64,
    "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": null, "rms_norm_eps": 1e-06,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "sliding_window": null,
    "tie_word_embeddings": false, "transformers_version": "5.24.0", "use_cache": true,
    "use_sliding_window": false, "vocab_size": 99})";

Json Parse(const char* text) { return *ParseJson(text, 1 << 20); }

std::string ErrorWith(const char* config, const std::function<void(Json&)>& change) {
  Json json = Parse(config);
  change(json);
  const auto spec = SpecOfHuggingFace(json.dump());
  EXPECT_FALSE(spec.ok()) << json;
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

ModelSpec LlamaSpec() {
  ModelSpec spec;
  spec.family = "llama";
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.ffn = 96;
  spec.context = 64;
  spec.vocab = 99;
  spec.tied = false;
  spec.norm_epsilon = 1e-6;
  spec.rope_theta = 5000;
  spec.rope_scaling = {4, 1, 4, 32};
  return spec;
}

TEST(HuggingFaceConfig, ReadsWhatTransformersWrites) {
  const auto llama = SpecOfHuggingFace(kLlama);
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(*llama, LlamaSpec());
  ModelSpec expected = LlamaSpec();
  expected.qkv_bias = true;
  expected.rope_theta = 10000;
  expected.rope_scaling = {};
  const auto qwen2 = SpecOfHuggingFace(kQwen2);
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_EQ(*qwen2, expected);
}

TEST(HuggingFaceConfig, ReadsTheOlderSpellingOfTheRotaryEmbedding) {
  for (const char* const type : {"rope_type", "type"}) {
    Json json = Parse(kLlama);
    json["rope_scaling"] = json["rope_parameters"];
    json["rope_scaling"].erase("rope_theta");
    json["rope_scaling"].erase("rope_type");
    json["rope_scaling"][type] = "llama3";
    json.erase("rope_parameters");
    json["rope_theta"] = 5000;
    const auto spec = SpecOfHuggingFace(json.dump());
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(*spec, LlamaSpec());
  }
  Json plain = Parse(kLlama);
  plain.erase("rope_parameters");
  plain["rope_scaling"] = nullptr;
  EXPECT_EQ(SpecOfHuggingFace(plain.dump())->rope_theta, 10000);
}

TEST(HuggingFaceConfig, WritesWhatItReads) {
  for (const char* const text : {kLlama, kQwen2}) {
    const ModelSpec spec = *SpecOfHuggingFace(text);
    const auto back = SpecOfHuggingFace(HuggingFaceConfig(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
  const ModelSpec gpt2{.layers = 2,
                       .hidden = 4,
                       .heads = 2,
                       .context = 3,
                       .vocab = 5,
                       .ffn = 7,
                       .norm_epsilon = 1e-6};
  EXPECT_EQ(*SpecOfHuggingFace(HuggingFaceConfig(gpt2)), gpt2);
}

TEST(HuggingFaceConfig, RefusesByKeyAndValue) {
  const auto llama = [](const char* key, Json value) {
    return ErrorWith(kLlama, [&](Json& json) { json[key] = value; });
  };
  EXPECT_THAT(llama("model_type", "mistral"), HasSubstr("'model_type' must be"));
  EXPECT_THAT(llama("hidden_act", "gelu"),
              HasSubstr("'hidden_act' must be \"silu\" or \"swish\", not \"gelu\""));
  EXPECT_THAT(llama("attention_bias", true), HasSubstr("'attention_bias' must be false, not true"));
  EXPECT_THAT(llama("mlp_bias", true), HasSubstr("'mlp_bias'"));
  EXPECT_THAT(llama("head_dim", 32), HasSubstr("'head_dim' must be hidden_size / "));
  EXPECT_THAT(llama("partial_rotary_factor", 0.5), HasSubstr("'partial_rotary_factor'"));
  EXPECT_THAT(llama("pretraining_tp", 2), HasSubstr("'pretraining_tp'"));
  EXPECT_THAT(llama("num_key_value_heads", 3), HasSubstr("'num_key_value_heads'"));
  EXPECT_THAT(llama("num_attention_heads", 5), HasSubstr("'num_attention_heads'"));
  EXPECT_THAT(llama("sliding_window", 128), HasSubstr("'sliding_window' (128)"));
  EXPECT_THAT(llama("quantization_config", Json::object()), HasSubstr("'quantization_config'"));
  EXPECT_THAT(llama("vocab_size", 1ull << 63), HasSubstr("'vocab_size'"));
  EXPECT_THAT(llama("hidden_size", 64.0), HasSubstr("'hidden_size'"));
  EXPECT_THAT(llama("num_hidden_layers", "2"), HasSubstr("'num_hidden_layers'"));
  EXPECT_THAT(llama("intermediate_size", nullptr), HasSubstr("'intermediate_size'"));
  EXPECT_THAT(llama("rms_norm_eps", -1e-6), HasSubstr("'rms_norm_eps'"));
  EXPECT_THAT(llama("rope_theta", 1000), HasSubstr("'rope_theta' must be as"));
  EXPECT_THAT(ErrorWith(kLlama, [](Json& json) { json.erase("hidden_size"); }),
              HasSubstr("'hidden_size' is missing"));
  EXPECT_THAT(ErrorWith(kQwen2, [](Json& json) { json["use_sliding_window"] = true; }),
              HasSubstr("'use_sliding_window' must be false, not true"));
  EXPECT_THAT(ErrorWith(kQwen2, [](Json& json) { json["layer_types"][1] = "sliding_attention"; }),
              HasSubstr("'layer_types'"));
  EXPECT_THAT(ErrorWith(kQwen2, [](Json& json) { json.erase("num_key_value_heads"); }),
              HasSubstr("'num_key_value_heads'"));
}

TEST(HuggingFaceConfig, RefusesOtherRotaryEmbeddings) {
  const auto rope = [](const char* key, Json value) {
    return ErrorWith(kLlama, [&](Json& json) { json["rope_parameters"][key] = value; });
  };
  for (const char* const type : {"linear", "dynamic", "yarn", "longrope"}) {
    EXPECT_THAT(rope("rope_type", type),
                HasSubstr("'rope_parameters.rope_type' must be \"llama3\" or \"default\", not"));
  }
  EXPECT_THAT(rope("factor", 0.5), HasSubstr("'rope_parameters.factor'"));
  EXPECT_THAT(rope("high_freq_factor", 1), HasSubstr("'rope_parameters.high_freq_factor'"));
  EXPECT_THAT(rope("original_max_position_embeddings", 0), HasSubstr("original_max_position"));
  EXPECT_THAT(rope("attention_factor", 2), HasSubstr("'rope_parameters.attention_factor'"));
  EXPECT_THAT(rope("partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(ErrorWith(kLlama, [](Json& json) { json["rope_parameters"] = 1; }),
              HasSubstr("'rope_parameters' must be an object"));
  EXPECT_THAT(ErrorWith(kLlama,
                        [](Json& json) {
                          json["rope_scaling"] = {{"rope_type", "default"}};
                        }),
              HasSubstr("'rope_scaling' must be the same"));
}

}  // namespace
}  // namespace longhaul::model
