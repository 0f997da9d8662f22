// Llama's and Qwen2's layout, several files, other dtypes, users' graphs, and what is wrong in any.
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/testing/test_folder.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/initial_shards.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/graph_json.h"

namespace longhaul::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

// 2 layers, 4 heads of 2 with 2 of keys and values, feed-forward 6.
model::ModelSpec LlamaSpec(bool qwen2) {
  model::ModelSpec spec;
  spec.family = "llama";
  spec.layers = 2;
  spec.hidden = 8;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.ffn = 6;
  spec.context = 16;
  spec.vocab = 5;
  spec.tied = qwen2;
  spec.qkv_bias = qwen2;
  spec.norm_epsilon = 1e-6;
  spec.rope_theta = 5000;
  if (!qwen2) spec.rope_scaling = {4, 1.5, 3.5, 8};
  return spec;
}

ModelWeights Numbered(const model::ModelSpec& spec) {
  ModelWeights weights{spec, {}};
  float next = 1;
  const model::Graph graph = *model::BuildGraph(spec);
  for (const model::Parameter& parameter : graph.parameters) {
    std::vector<float>& values = weights.parameters.emplace_back(parameter.elements());
    for (float& value : values) value = next++;
  }
  return weights;
}

const std::vector<float>& Ours(const ModelWeights& weights, absl::string_view name) {
  const model::Graph graph = *model::BuildGraph(weights.spec);
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    if (graph.parameters[i].name == name) return weights.parameters[i];
  }
  ADD_FAILURE() << name;
  return weights.parameters[0];
}

std::vector<float> Floats(absl::string_view bytes) {
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class HuggingFaceFilesTest : public testing::Test {
 protected:
  void Export(const ModelWeights& weights) {
    files_ = *ExportHuggingFace(weights);
    weights_file_ = Joined(files_.model_safetensors);
    ASSERT_TRUE(WriteHuggingFace(files_, folder_, /*overwrite=*/true).ok());
  }
  void Write(const std::string& name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder_, "/", name), bytes).ok());
  }
  // The error of an import once the weights are these tensors.
  std::string ErrorWith(const std::vector<TensorView>& tensors) {
    Write("model.safetensors", WriteSafetensors(tensors, {}));
    return ImportError();
  }
  std::string ImportError() {
    const auto weights = ImportHuggingFace(folder_);
    EXPECT_FALSE(weights.ok());
    return std::string(weights.status().message());
  }
  // The exported tensors in two files, with the index that transformers writes for them.
  void Split() {
    const SafetensorsFile file = *ParseSafetensors(weights_file_);
    const auto middle = file.tensors.begin() + 3;
    Json map;
    for (auto tensor = file.tensors.begin(); tensor != file.tensors.end(); ++tensor) {
      map[tensor->name] =
          tensor < middle ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    }
    Write("model-00001-of-00002.safetensors",
          WriteSafetensors({&*file.tensors.begin(), size_t{3}}, {}));
    Write("model-00002-of-00002.safetensors",
          WriteSafetensors({&*middle, file.tensors.size() - 3}, {}));
    std::filesystem::remove(folder_ + "/model.safetensors");
    index_ = {{"metadata", {{"total_size", 1}}}, {"weight_map", map}};
    Write("model.safetensors.index.json", index_.dump());
  }
  std::string ErrorWithIndex(const std::function<void(Json& map)>& change) {
    Json index = index_;
    change(index["weight_map"]);
    Write("model.safetensors.index.json", index.dump());
    return ImportError();
  }

  const TestFolder test_folder_{"hugging-face-files-test"};
  const std::string& folder_ = test_folder_.path();
  HuggingFaceFiles files_;
  std::string weights_file_;
  Json index_;
};

// The names that transformers' state_dict() has for two layers.
std::vector<std::string> TransformersNames(bool qwen2) {
  std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight"};
  if (!qwen2) names.push_back("lm_head.weight");
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const std::string part :
         {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
          "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
          "mlp.down_proj"}) {
      names.push_back(layer + part + ".weight");
    }
    for (const std::string part : {"q_proj", "k_proj", "v_proj"}) {
      if (qwen2) names.push_back(layer + "self_attn." + part + ".bias");
    }
  }
  return names;
}

TEST_F(HuggingFaceFilesTest, LlamaAndQwen2HaveTheNamesOfTransformers) {
  for (const bool qwen2 : {false, true}) {
    Export(Numbered(LlamaSpec(qwen2)));
    std::vector<std::string> names;
    const SafetensorsFile file = *ParseSafetensors(weights_file_);
    for (const TensorView& tensor : file.tensors) names.push_back(tensor.name);
    EXPECT_THAT(names, UnorderedElementsAreArray(TransformersNames(qwen2)));
    const Json config = *ParseJson(files_.config_json, 1 << 20);
    EXPECT_EQ(config["architectures"][0], qwen2 ? "Qwen2ForCausalLM" : "LlamaForCausalLM");
    EXPECT_EQ(config["intermediate_size"], 6);
    EXPECT_EQ(config["num_key_value_heads"], 2);
  }
}

TEST_F(HuggingFaceFilesTest, PackedRowsComeApart) {
  const ModelWeights weights = Numbered(LlamaSpec(true));
  Export(weights);
  const SafetensorsFile file = *ParseSafetensors(weights_file_);
  const auto rows = [](const std::vector<float>& values, int64_t width, int64_t from, int64_t to) {
    return std::vector<float>(values.begin() + from * width, values.begin() + to * width);
  };
  const auto theirs = [&](const std::string& name) { return Floats(file.Find(name)->bytes); };
  const std::string layer = "model.layers.1.";
  const std::vector<float>& qkv = Ours(weights, "layers.1.attn.qkv.weight");
  EXPECT_EQ(theirs(layer + "self_attn.q_proj.weight"), rows(qkv, 8, 0, 8));
  EXPECT_EQ(theirs(layer + "self_attn.k_proj.weight"), rows(qkv, 8, 8, 12));
  EXPECT_EQ(theirs(layer + "self_attn.v_proj.weight"), rows(qkv, 8, 12, 16));
  EXPECT_THAT(file.Find(layer + "self_attn.k_proj.weight")->shape, ElementsAre(4, 8));
  const std::vector<float>& bias = Ours(weights, "layers.1.attn.qkv.bias");
  EXPECT_EQ(theirs(layer + "self_attn.k_proj.bias"), rows(bias, 1, 8, 12));
  const std::vector<float>& wide = Ours(weights, "layers.1.mlp.gate_up.weight");
  EXPECT_EQ(theirs(layer + "mlp.gate_proj.weight"), rows(wide, 8, 0, 6));
  EXPECT_EQ(theirs(layer + "mlp.up_proj.weight"), rows(wide, 8, 6, 12));
  EXPECT_EQ(theirs(layer + "mlp.down_proj.weight"), Ours(weights, "layers.1.mlp.down.weight"));
}

TEST_F(HuggingFaceFilesTest, EveryFamilyReturnsWithEveryBit) {
  for (const bool qwen2 : {false, true}) {
    const ModelWeights weights = Numbered(LlamaSpec(qwen2));
    Export(weights);
    const auto back = ImportHuggingFace(folder_);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->spec, weights.spec);
    EXPECT_EQ(back->parameters, weights.parameters);
  }
}

TEST_F(HuggingFaceFilesTest, UsersGraphReturnsUnderItsOwnNames) {
  const auto graph = model::BuildGraph(LlamaSpec(false));
  ModelWeights weights = Numbered(*model::SpecOfGraph(model::GraphToJson(*graph)));
  Export(Numbered(LlamaSpec(true)));  // its config.json must not stay
  Export(weights);
  EXPECT_TRUE(files_.config_json.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/config.json"));
  EXPECT_NE(ParseSafetensors(weights_file_)->Find("layers.0.attn.qkv.weight"), nullptr);
  const auto back = ImportHuggingFace(folder_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->spec, weights.spec);
  EXPECT_EQ(back->parameters, weights.parameters);
  Write("config.json", "{}");
  EXPECT_THAT(ImportError(), HasSubstr("graph.json are both there"));
}

TEST_F(HuggingFaceFilesTest, SeveralFilesWithAnIndex) {
  const ModelWeights weights = Numbered(LlamaSpec(false));
  Export(weights);
  Split();
  const auto back = ImportHuggingFace(folder_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->parameters, weights.parameters);
}

TEST_F(HuggingFaceFilesTest, RefusesBadIndexes) {
  Export(Numbered(LlamaSpec(false)));
  Split();
  const std::string path = folder_ + "/model.safetensors.index.json: ";
  for (const Json& outside :
       std::vector<Json>{"../x.safetensors", "/x.safetensors", "a/b.safetensors", "", "config.json",
                         ".x.safetensors", 1, nullptr}) {
    EXPECT_THAT(ErrorWithIndex([&](Json& map) { map["lm_head.weight"] = outside; }),
                AllOf(HasSubstr(path), HasSubstr("'weight_map.lm_head.weight'")));
  }
  EXPECT_THAT(ErrorWithIndex([](Json& map) { map = Json::object(); }),
              HasSubstr("1 to 4096 files"));
  EXPECT_THAT(ErrorWithIndex([](Json& map) { map = 1; }), HasSubstr("'weight_map'"));
  EXPECT_THAT(ErrorWithIndex([](Json& map) { map.erase("model.norm.weight"); }),
              AllOf(HasSubstr("00002.safetensors"), HasSubstr("'model.norm.weight', which")));
  EXPECT_THAT(ErrorWithIndex([](Json& map) { map["more"] = map["lm_head.weight"]; }),
              HasSubstr("lacks the tensor 'more'"));
  EXPECT_THAT(ErrorWithIndex([](Json& map) { map["more"] = "absent.safetensors"; }),
              HasSubstr("absent.safetensors"));
  Write("model.safetensors.index.json", index_.dump().substr(0, 40));
  EXPECT_THAT(ImportError(), HasSubstr(path));
  std::filesystem::remove(folder_ + "/model.safetensors.index.json");
  EXPECT_THAT(ImportError(), HasSubstr("no model.safetensors.index.json either"));
}

TEST_F(HuggingFaceFilesTest, HalfPrecisionIsExact) {
  ModelWeights weights = SmallWeights(true);
  // 2^-24 (the least subnormal), 2^-14, 65504 (the greatest), 1/3 rounded, -0, 1 + 2^-10.
  const std::vector<uint16_t> half = {0x0001, 0x0400, 0x7BFF, 0x3555, 0x8000, 0x3C01};
  const std::vector<float> half_values = {0x1p-24f,        0x1p-14f, 65504.0f,
                                          0.333251953125f, -0.0f,    1.0009765625f};
  const std::vector<uint16_t> brain = {0x3F80, 0xC000, 0x0001, 0x7F7F, 0x3EAB, 0x8000};
  const std::vector<float> brain_values = {1.0f,        -2.0f,        0x1p-133f,
                                           0x1.FEp127f, 0.333984375f, -0.0f};
  for (const bool is_brain : {false, true}) {
    Export(weights);
    SafetensorsFile file = *ParseSafetensors(weights_file_);
    std::vector<uint16_t> bits(12);
    std::vector<float> expected(12);
    for (size_t i = 0; i < 12; ++i) {
      bits[i] = (is_brain ? brain : half)[i % 6];
      expected[i] = (is_brain ? brain_values : half_values)[i % 6];
    }
    for (TensorView& tensor : file.tensors) {
      if (tensor.name != "transformer.wpe.weight") continue;
      tensor.dtype = is_brain ? "BF16" : "F16";
      tensor.bytes = {reinterpret_cast<const char*>(bits.data()), 24};
    }
    Write("model.safetensors", WriteSafetensors(file.tensors, {}));
    const auto back = ImportHuggingFace(folder_);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(0, std::memcmp(back->parameters[1].data(), expected.data(), 48));
  }
}

TEST_F(HuggingFaceFilesTest, RefusesOtherDtypesInfinitiesAndDoubledTensors) {
  Export(SmallWeights(true));
  const SafetensorsFile file = *ParseSafetensors(weights_file_);
  const auto change = [&](const TensorView& with) {
    std::vector<TensorView> tensors = file.tensors;
    for (TensorView& tensor : tensors) {
      if (tensor.name == with.name) tensor = with;
    }
    return tensors;
  };
  const std::string zeros(96, '\0');
  EXPECT_THAT(ErrorWith(change({"transformer.wpe.weight", "F64", {3, 4}, zeros})),
              HasSubstr("'transformer.wpe.weight' is F64 [3, 4], not F32, F16 or BF16 [3, 4]"));
  EXPECT_THAT(ErrorWith(change({"transformer.wpe.weight", "I32", {3, 4}, zeros.substr(0, 48)})),
              HasSubstr("'transformer.wpe.weight' is I32 [3, 4], not F32"));
  EXPECT_THAT(ErrorWith(change({"transformer.wpe.weight", "I64", {3, 4}, zeros})),
              HasSubstr("'transformer.wpe.weight' is I64 [3, 4], not F32"));
  EXPECT_THAT(ErrorWith(change({"transformer.wpe.weight", "F8_E4M3", {3, 4}, zeros.substr(0, 12)})),
              HasSubstr("'transformer.wpe.weight' is F8_E4M3 [3, 4], not F32"));
  for (const std::string dtype : {"F16", "BF16"}) {
    std::string bytes(24, '\0');
    bytes[10] = dtype == "F16" ? '\x00' : '\x80';
    bytes[11] = dtype == "F16" ? '\x7C' : '\x7F';
    EXPECT_THAT(ErrorWith(change({"transformer.wpe.weight", dtype, {3, 4}, bytes})),
                HasSubstr("'transformer.wpe.weight' holds inf as element 5"));
  }
  std::vector<TensorView> doubled = file.tensors;
  doubled.push_back({"wpe.weight", "F32", {3, 4}, absl::string_view(zeros).substr(0, 48)});
  EXPECT_THAT(ErrorWith(doubled), HasSubstr("is given twice"));
}

TEST_F(HuggingFaceFilesTest, NamesWithoutPrefixMasksAndAnEqualHeadAreTaken) {
  const ModelWeights weights = SmallWeights(true);
  Export(weights);
  SafetensorsFile file = *ParseSafetensors(weights_file_);
  std::vector<TensorView> tensors = file.tensors;
  TensorView head = *file.Find("transformer.wte.weight");
  head.name = "lm_head.weight";
  tensors.push_back(head);
  for (TensorView& tensor : tensors) {
    if (tensor.name.rfind("transformer.", 0) == 0) tensor.name = tensor.name.substr(12);
  }
  tensors.push_back({"h.0.attn.bias", "U8", {1, 1, 3, 3}, "123456789"});
  Write("model.safetensors", WriteSafetensors(tensors, {}));
  const auto back = ImportHuggingFace(folder_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->parameters, weights.parameters);
  std::string other(80, '\0');
  tensors[file.tensors.size()].bytes = other;
  EXPECT_THAT(ErrorWith(tensors), HasSubstr("'lm_head.weight' with other numbers"));
}

TEST_F(HuggingFaceFilesTest, SizesBeyondTheFilesTakeNoMemory) {
  Export(Numbered(LlamaSpec(false)));
  Json config = *ParseJson(files_.config_json, 1 << 20);
  config["vocab_size"] = 1 << 24;
  config["hidden_size"] = 65536;
  config.erase("head_dim");
  Write("config.json", config.dump());
  EXPECT_THAT(ImportError(), HasSubstr("bytes are too few for the"));
}

TEST_F(HuggingFaceFilesTest, ContextMayBeShorter) {
  Export(SmallWeights(true));
  const auto shorter = ImportHuggingFace(folder_, 2);
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_EQ(shorter->spec.context, 2);
  const std::vector<float> all = SmallWeights(true).parameters[1];
  EXPECT_EQ(shorter->parameters[1], std::vector<float>(all.begin(), all.begin() + 8));
  EXPECT_FALSE(ImportHuggingFace(folder_, 4).ok());
}

TEST_F(HuggingFaceFilesTest, TokenizersFilesAreFoundAndWritten) {
  HuggingFaceFiles files = *ExportHuggingFace(SmallWeights(true));
  files.passed = {{"tokenizer.json", "{}"}, {"merges.txt", "a b"}};
  ASSERT_TRUE(WriteHuggingFace(files, folder_, true).ok());
  Write("README.md", "mine");
  EXPECT_THAT(*FindPassedFiles(folder_), ElementsAre("merges.txt", "tokenizer.json"));
  EXPECT_EQ(*ReadFile(folder_ + "/merges.txt", 9), "a b");
  ASSERT_TRUE(MakeDirectories(folder_ + "/vocab.json").ok());
  EXPECT_THAT(FindPassedFiles(folder_).status().message(), HasSubstr("vocab.json"));
}

TEST_F(HuggingFaceFilesTest, InitialShardsHoldEverything) {
  const ModelWeights weights = Numbered(LlamaSpec(false));
  const model::Graph graph = *model::BuildGraph(weights.spec);
  std::vector<EncodedShard> shards;
  const auto manifest = StoreInitialShards("first", weights, [&](const EncodedShard& shard) {
    shards.push_back(shard);
    return absl::OkStatus();
  });
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(ValidateCoverage(*manifest, graph).ok());
  EXPECT_EQ(manifest->step, 0);
  EXPECT_EQ(*ManifestFromJson(ToJson(*manifest)), *manifest);
  ModelWeights back{weights.spec, {}};
  for (size_t s = 0; s < shards.size(); ++s) {
    std::vector<MutableParameterState> states;
    std::vector<std::vector<float>> moments;
    moments.reserve(2 * graph.parameters.size());
    back.parameters.resize(graph.parameters.size());
    for (size_t p = 0; p < graph.parameters.size(); ++p) {
      back.parameters[p].resize(weights.parameters[p].size());
      auto& first = moments.emplace_back(weights.parameters[p].size(), 1.0f);
      auto& second = moments.emplace_back(weights.parameters[p].size(), 1.0f);
      states.push_back({static_cast<int>(p), absl::MakeSpan(back.parameters[p]),
                        absl::MakeSpan(first), absl::MakeSpan(second)});
    }
    ASSERT_TRUE(DecodeShard(graph, manifest->shards[s], shards[s].bytes, states).ok());
    EXPECT_EQ(moments[0], std::vector<float>(moments[0].size(), 0.0f));
  }
  EXPECT_EQ(back.parameters, weights.parameters);
  const auto failed = StoreInitialShards(
      "first", weights, [](const EncodedShard&) { return absl::UnavailableError("gone"); });
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace longhaul::checkpoint
