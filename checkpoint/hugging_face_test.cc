#include "checkpoint/hugging_face.h"

#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/testing/test_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

class HuggingFaceTest : public testing::Test {
 protected:
  void Export(bool tied) {
    files_ = *ExportHuggingFace(SmallWeights(tied));
    weights_file_ = Joined(files_.model_safetensors);
    ASSERT_TRUE(WriteHuggingFace(files_, folder_, /*overwrite=*/true).ok());
  }
  std::string ImportError() {
    const auto weights = ImportHuggingFace(folder_);
    EXPECT_FALSE(weights.ok());
    return std::string(weights.status().message());
  }
  std::string ImportErrorWith(const std::function<void(Json&)>& change) {
    Json config = *ParseJson(files_.config_json, 1 << 20);
    change(config);
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/config.json", config.dump()).ok());
    const std::string error = ImportError();
    EXPECT_THAT(error, HasSubstr(folder_ + "/config.json: "));
    return error;
  }

  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  std::string weights_file_;
  const TestFolder test_folder_{"hugging-face-test"};
  const std::string folder_ = test_folder_.path() + "/model";  // which is not there yet
  HuggingFaceFiles files_;
};

std::vector<float> Values(const SafetensorsFile& file, absl::string_view name) {
  const TensorView* const tensor = file.Find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<float> values(tensor->bytes.size() / 4);
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

const std::vector<float>& Ours(const ModelWeights& weights, absl::string_view name) {
  const model::Graph graph = SmallGraph(weights.spec.tied);
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    if (graph.parameters[i].name == name) return weights.parameters[i];
  }
  ADD_FAILURE() << name;
  return weights.parameters[0];
}

// The names that transformers' GPT2LMHeadModel.state_dict() has for two layers.
std::vector<std::string> TransformersNames() {
  std::vector<std::string> names = {"transformer.wte.weight", "transformer.wpe.weight",
                                    "transformer.ln_f.weight", "transformer.ln_f.bias"};
  for (const std::string layer : {"transformer.h.0.", "transformer.h.1."}) {
    for (const std::string part :
         {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
      names.push_back(layer + part + ".weight");
      names.push_back(layer + part + ".bias");
    }
  }
  return names;
}

TEST_F(HuggingFaceTest, TensorsHaveNamesAndOrderOfTransformers) {
  for (const bool tied : {true, false}) {
    const HuggingFaceFiles files = *ExportHuggingFace(SmallWeights(tied));
    const std::string bytes = Joined(files.model_safetensors);
    const auto file = ParseSafetensors(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
    std::vector<std::string> names, expected = TransformersNames();
    for (const TensorView& tensor : file->tensors) names.push_back(tensor.name);
    if (!tied) expected.push_back("lm_head.weight");
    EXPECT_THAT(names, UnorderedElementsAreArray(expected));
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  }
}

TEST_F(HuggingFaceTest, Conv1dWeightsAreTransposedAndNoOthers) {
  const ModelWeights weights = SmallWeights(false);
  const HuggingFaceFiles files = *ExportHuggingFace(weights);
  const std::string bytes = Joined(files.model_safetensors);
  const SafetensorsFile file = *ParseSafetensors(bytes);
  EXPECT_THAT(file.Find("transformer.h.1.attn.c_attn.weight")->shape, ElementsAre(4, 12));
  EXPECT_THAT(file.Find("transformer.h.1.mlp.c_fc.weight")->shape, ElementsAre(4, 16));
  EXPECT_THAT(file.Find("transformer.h.1.mlp.c_proj.weight")->shape, ElementsAre(16, 4));
  EXPECT_THAT(file.Find("lm_head.weight")->shape, ElementsAre(5, 4));
  const std::vector<float> theirs = Values(file, "transformer.h.1.attn.c_attn.weight");
  const std::vector<float>& ours = Ours(weights, "h.1.attn.qkv.weight");
  for (int in = 0; in < 4; ++in) {
    for (int out = 0; out < 12; ++out) EXPECT_EQ(theirs[in * 12 + out], ours[out * 4 + in]);
  }
  const std::vector<float> square = Values(file, "transformer.h.0.attn.c_proj.weight");
  EXPECT_EQ(square[1], Ours(weights, "h.0.attn.proj.weight")[4]);
  EXPECT_EQ(Values(file, "transformer.wte.weight"), Ours(weights, "wte"));
  EXPECT_EQ(Values(file, "transformer.wpe.weight"), Ours(weights, "wpe"));
  EXPECT_EQ(Values(file, "lm_head.weight"), Ours(weights, "head.weight"));
  EXPECT_EQ(Values(file, "transformer.h.1.mlp.c_fc.bias"), Ours(weights, "h.1.mlp.fc.bias"));
}

TEST_F(HuggingFaceTest, ConfigSaysWhatTheModelIs) {
  const Json config = *ParseJson(ExportHuggingFace(SmallWeights(false))->config_json, 1 << 20);
  EXPECT_EQ(config["model_type"], "gpt2");
  EXPECT_EQ(config["architectures"], Json({"GPT2LMHeadModel"}));
  EXPECT_EQ(config["n_layer"], 2);
  EXPECT_EQ(config["n_embd"], 4);
  EXPECT_EQ(config["n_head"], 2);
  EXPECT_EQ(config["n_positions"], 3);
  EXPECT_EQ(config["n_ctx"], 3);
  EXPECT_EQ(config["vocab_size"], 5);
  EXPECT_EQ(config["activation_function"], "gelu_new");
  EXPECT_EQ(config["layer_norm_epsilon"], 1e-5);
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["resid_pdrop"], 0);
}

TEST_F(HuggingFaceTest, RoundTripKeepsEveryBit) {
  for (const bool tied : {true, false}) {
    Export(tied);
    const auto weights = ImportHuggingFace(folder_);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->spec, SmallSpec(tied));
    EXPECT_EQ(weights->parameters, SmallWeights(tied).parameters);
    EXPECT_EQ(Joined(ExportHuggingFace(*weights)->model_safetensors), weights_file_);
  }
}

TEST_F(HuggingFaceTest, ExportRefusesOtherSizes) {
  ModelWeights weights = SmallWeights(true);
  weights.parameters.pop_back();
  EXPECT_THAT(ExportHuggingFace(weights).status().message(), HasSubstr("parameters, not"));
  weights = SmallWeights(true);
  weights.parameters[1].pop_back();
  EXPECT_THAT(ExportHuggingFace(weights).status().message(), HasSubstr("parameter 'wpe'"));
}

TEST_F(HuggingFaceTest, NothingIsOverwrittenUnasked) {
  Export(true);
  const absl::Status status = WriteHuggingFace({"{}", OnePiece("")}, folder_, /*overwrite=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(folder_));
  EXPECT_EQ(*ReadFile(folder_ + "/config.json", 1 << 20), files_.config_json);
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_EQ(WriteHuggingFace({"{}", OnePiece("")}, folder_, false).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CheckExportTarget(folder_, false).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(HuggingFaceTest, AModelIsAsOpenAsAnyOtherFolderOfTheUser) {
  const mode_t mask = ::umask(027);
  Export(true);
  ::umask(mask);
  const auto mode = [&](const std::string& name) {
    return static_cast<unsigned>(std::filesystem::status(folder_ + name).permissions());
  };
  EXPECT_EQ(mode(""), 0750u);
  EXPECT_EQ(mode("/config.json"), 0640u);
  EXPECT_EQ(mode("/model.safetensors"), 0640u);
}

TEST_F(HuggingFaceTest, OverwritingReplacesOnlyTheTwoFiles) {
  Export(true);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/notes", "mine").ok());
  ASSERT_TRUE(CheckExportTarget(folder_ + "/", true).ok());
  ASSERT_TRUE(WriteHuggingFace({"{}", OnePiece("new")}, folder_ + "/", true).ok());
  EXPECT_THAT(Entries(), UnorderedElementsAre("config.json", "model.safetensors", "notes"));
  EXPECT_EQ(*ReadFile(folder_ + "/config.json", 9), "{}");
  EXPECT_EQ(*ReadFile(folder_ + "/model.safetensors", 9), "new");
  EXPECT_EQ(*ReadFile(folder_ + "/notes", 9), "mine");
}

TEST_F(HuggingFaceTest, TargetsThatCannotBeWrittenAreRefusedAndLeftAlone) {
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "x").ok());
  for (const char* bad : {"/file", "/file/model", "/absent/model", "/file/"}) {
    for (const bool overwrite : {false, true}) {
      const std::string target = folder_ + bad;
      const absl::Status checked = CheckExportTarget(target, overwrite);
      EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument) << target;
      EXPECT_THAT(checked.message(), HasSubstr(folder_)) << target;
      EXPECT_EQ(WriteHuggingFace({"{}", OnePiece("")}, target, overwrite), checked);
    }
  }
  EXPECT_EQ(CheckExportTarget("", false).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckExportTarget("/proc/self/model", false).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Entries(), UnorderedElementsAre("file"));
  ASSERT_TRUE(CheckExportTarget(folder_ + "/new", false).ok());
  EXPECT_THAT(Entries(), UnorderedElementsAre("file"));
  // What cannot take the place of its target is removed.
  ASSERT_TRUE(MakeDirectories(folder_ + "/taken/config.json/full").ok());
  EXPECT_FALSE(WriteHuggingFace({"{}", OnePiece("")}, folder_ + "/taken", true).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/taken")) {
    EXPECT_THAT(entry.path().filename().string(), Not(StartsWith(".longhaul")));
  }
}

TEST_F(HuggingFaceTest, ImportRefusesNumbersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    ModelWeights weights = SmallWeights(true);
    weights.parameters[1][3] = bad;
    ASSERT_TRUE(WriteHuggingFace(*ExportHuggingFace(weights), folder_, true).ok());
    EXPECT_THAT(ImportError(),
                AllOf(HasSubstr("model.safetensors"), HasSubstr("'transformer.wpe.weight'"),
                      HasSubstr("element 3")));
  }
}

TEST_F(HuggingFaceTest, ImportAcceptsWhatTransformersAdds) {
  Export(true);
  Json config = *ParseJson(files_.config_json, 1 << 20);
  // What save_pretrained of transformers 5.24.0 writes for such a model.
  config.update(*ParseJson(R"({"add_cross_attention": false, "dtype": "float32",
      "initializer_range": 0.02, "pad_token_id": null, "reorder_and_upcast_attn": false,
      "scale_attn_by_inverse_layer_idx": false, "summary_activation": null,
      "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
      "summary_use_proj": true, "transformers_version": "5.24.0", "use_cache": true})",
                           1 << 20));
  config["n_inner"] = 16;
  config.erase("n_ctx");
  config.erase("tie_word_embeddings");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/config.json", config.dump()).ok());
  const auto weights = ImportHuggingFace(folder_);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->spec, SmallSpec(true));
}

TEST_F(HuggingFaceTest, ImportRefusesOtherConfigurationsByName) {
  Export(true);
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["model_type"] = "opt"; }),
              HasSubstr("'model_type' must be \"gpt2\", \"llama\" or \"qwen2\", not \"opt\""));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["activation_function"] = "relu"; }),
              HasSubstr("'activation_function'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["layer_norm_epsilon"] = 0; }),
              HasSubstr("'layer_norm_epsilon'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_inner"] = -5; }), HasSubstr("'n_inner'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_ctx"] = 5; }), HasSubstr("'n_ctx'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["scale_attn_by_inverse_layer_idx"] = true; }),
              HasSubstr("'scale_attn_by_inverse_layer_idx'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["rope_theta"] = 1; }), HasSubstr("'rope_theta'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j.erase("n_layer"); }), HasSubstr("'n_layer'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_embd"] = -4; }), HasSubstr("'n_embd'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_embd"] = INT64_MAX; }), HasSubstr("'n_embd'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_layer"] = INT64_MAX; }), HasSubstr("'n_layer'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["n_head"] = 3; }), HasSubstr("heads"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j["tie_word_embeddings"] = 1; }),
              HasSubstr("'tie_word_embeddings'"));
  EXPECT_THAT(ImportErrorWith([](Json& j) { j = Json::array(); }), HasSubstr("JSON object"));
}

TEST_F(HuggingFaceTest, ImportRefusesOtherTensorsByName) {
  EXPECT_THAT(ImportError(), HasSubstr(folder_ + "/config.json"));  // nothing there
  Export(true);
  const auto error_with = [&](const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/model.safetensors", bytes).ok());
    return ImportError();
  };
  EXPECT_THAT(error_with(weights_file_.substr(0, weights_file_.size() - 1)),
              HasSubstr(folder_ + "/model.safetensors: safetensors"));
  EXPECT_EQ(ImportHuggingFace(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  const SafetensorsFile file = *ParseSafetensors(weights_file_);
  std::vector<TensorView> tensors = file.tensors;
  tensors.pop_back();
  EXPECT_THAT(error_with(WriteSafetensors(tensors, {})),
              HasSubstr("lacks the tensor 'transformer.wte.weight'"));
  tensors = file.tensors;
  tensors.push_back({"lm_head.weight", "F32", {1}, "1234"});
  EXPECT_THAT(error_with(WriteSafetensors(tensors, {})), HasSubstr("'lm_head.weight'"));
  tensors = file.tensors;
  std::swap(tensors.back().shape[0], tensors.back().shape[1]);
  EXPECT_THAT(error_with(WriteSafetensors(tensors, {})),
              HasSubstr("F32 [4, 5], not F32, F16 or BF16 [5, 4]"));
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(ImportError(), HasSubstr(folder_ + "/model.safetensors"));
}

}  // namespace
}  // namespace longhaul::checkpoint
