#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/graph_json.h"
#include "model/hugging_face.h"
#include "run/run_fields.h"
#include "run/run_spec.h"
#include "run/test_spec.h"

namespace longhaul::run {
namespace {

using testing::HasSubstr;

// The example with one piece of text, which must be there, replaced.
std::string Changed(absl::string_view from, absl::string_view to) {
  std::string text = kExampleYaml;
  EXPECT_GT(absl::StrReplaceAll({{from, to}}, &text), 0) << from;
  return text;
}

std::string ErrorOf(absl::string_view yaml) {
  const auto spec = ParseRunFile(yaml, "first.yaml");
  EXPECT_FALSE(spec.ok()) << yaml;
  if (spec.ok()) return "";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

TEST(ParseRunFile, ReadsTheExample) {
  const auto spec = ParseRunFile(kExampleYaml, "first.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, ExampleSpec());
}

TEST(ParseRunFile, ReadsWhatTheExampleDoesNotShow) {
  std::string text = Changed("vocab: 256}", "vocab: 256, tied: false}");
  absl::StrReplaceAll({{"betas: [0.9, 0.95]", "betas: [0.8, 0.99], epsilon: 1e-6"},
                       {"stages: auto, schedule: 1f1b", "stages: 3, schedule: gpipe"},
                       {"codec: none", "codec: zstd"},
                       {"tokenizer: bytes", "tokenizer: uint16"},
                       {"decay: cosine", "decay: constant"}},
                      &text);
  RunSpec expected = ExampleSpec();
  expected.model.tied = false;
  expected.train.optimizer.beta1 = 0.8;
  expected.train.optimizer.beta2 = 0.99;
  expected.train.optimizer.epsilon = 1e-6;
  expected.train.schedule.decay = Decay::kConstant;
  expected.stages = 3;
  expected.schedule = "gpipe";
  expected.codec = "zstd";
  expected.data.tokenizer = Tokenizer::kUint16;
  const auto spec = ParseRunFile(text, "first.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, expected);
}

TEST(ParseRunFile, MostKeysHaveDefaults) {
  const auto spec = ParseRunFile(
      "name: a\n"
      "model: {layers: 1, hidden: 8, heads: 2, context: 4, vocab: 10}\n"
      "data: {train: a.txt}\n"
      "train: {steps: 1, global_batch: 1, micro_batch: 1}\n",
      "a.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model.family, "gpt2");
  EXPECT_TRUE(spec->model.tied);
  EXPECT_EQ(spec->train.optimizer, OptimizerSpec());
  EXPECT_EQ(spec->train.evaluate_every, 0);
}

TEST(ParseRunFile, EveryRequiredKeyIsRequired) {
  EXPECT_THAT(ErrorOf(Changed("name: first\n", "")), HasSubstr("first.yaml: the key 'name'"));
  for (const char* piece :
       {"layers: 6, ", "hidden: 128, ", "heads: 4, ", "context: 128, ", ", vocab: 256"}) {
    EXPECT_THAT(ErrorOf(Changed(piece, "")), HasSubstr("first.yaml:2: the key 'model."));
  }
  EXPECT_THAT(ErrorOf(Changed("train: corpus.txt, ", "")), HasSubstr("'data.train' is missing"));
  for (const char* key : {"steps", "global_batch", "micro_batch"}) {
    EXPECT_THAT(ErrorOf(Changed(absl::StrCat("\n  ", key, ":"), "\n  #")),
                HasSubstr(absl::StrCat("first.yaml:4: the key 'train.", key, "' is missing")));
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("the key 'name' is missing"));
}

TEST(ParseRunFile, MisspeltKeysNameLineAndNearest) {
  EXPECT_EQ(ErrorOf(Changed("micro_batch", "micro_bach")),
            "first.yaml:7: unknown key 'train.micro_bach'; did you mean 'micro_batch'?");
  EXPECT_EQ(ErrorOf(Changed("exchange", "exchnage")),
            "first.yaml:13: unknown key 'exchnage'; did you mean 'exchange'?");
  EXPECT_EQ(ErrorOf(Changed("warmup_steps", "warm_up_steps")),
            "first.yaml:9: unknown key 'train.schedule.warm_up_steps'; did you mean "
            "'warmup_steps'?");
  EXPECT_EQ(ErrorOf(Changed("tokenizer: bytes", "id: x")).substr(0, 50),
            "first.yaml:3: unknown key 'data.id'; known here: t");
}

TEST(ParseRunFile, WrongTypesNameLineAndKey) {
  EXPECT_EQ(ErrorOf(Changed("steps: 200", "steps: abc")),
            "first.yaml:5: 'train.steps': expected a whole number, got 'abc'");
  EXPECT_THAT(ErrorOf(Changed("betas: [0.9, 0.95]", "betas: 0.9")),
              HasSubstr("first.yaml:8: 'train.optimizer.betas': expected a list of 2 numbers"));
  EXPECT_THAT(ErrorOf(Changed("decay: cosine", "decay: linear")),
              HasSubstr("expected one of constant, cosine, got 'linear'"));
  EXPECT_THAT(ErrorOf(Changed("stages: auto", "stages: many")), HasSubstr("pipeline.stages"));
}

TEST(ParseRunFile, RangesNameLineAndKey) {
  struct Case {
    const char *from, *to, *error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"layers: 6", "layers: 0", "first.yaml:2: 'model.layers'"},
           {"vocab: 256", "vocab: 100000000", "first.yaml:2: 'model.vocab'"},
           {"family: gpt2", "family: gpt3", "first.yaml:2: 'model.family'"},
           {"fraction: 0.1", "fraction: 0.6", "first.yaml:3: 'data.validation_fraction'"},
           {"fraction: 0.1", "fraction: -0.1", "first.yaml:3: 'data.validation_fraction'"},
           {"fraction: 0.1", "fraction: nan", "first.yaml:3: 'data.validation_fraction'"},
           {"steps: 200", "steps: 1000000001", "first.yaml:5: 'train.steps'"},
           {"global_batch: 32", "global_batch: -1", "first.yaml:6: 'train.global_batch'"},
           {"rate: 1e-3", "rate: 0", "first.yaml:8: 'train.optimizer.learning_rate'"},
           {"rate: 1e-3", "rate: inf", "first.yaml:8: 'train.optimizer.learning_rate'"},
           {"0.95]", "1.0]", "first.yaml:8: 'train.optimizer.betas'"},
           {"name: adamw", "name: sgd", "first.yaml:8: 'train.optimizer.name'"},
           {"decay: 0.1", "decay: -1", "first.yaml:8: 'train.optimizer.weight_decay'"},
           {"seed: 1", "seed: -1", "first.yaml:10: 'train.seed'"},
           {"stages: auto", "stages: 2000", "first.yaml:12: 'pipeline.stages'"},
           {"stages: auto", "stages: 0", "first.yaml:12: 'pipeline.stages'"},
           {"schedule: 1f1b", "schedule: 2f2b", "first.yaml:12: 'pipeline.schedule'"},
           {"codec: none", "codec: zip", "first.yaml:13: 'exchange.codec'"},
           {"every: 100", "every: -1", "first.yaml:14: 'checkpoint.every'"}}) {
    EXPECT_THAT(ErrorOf(Changed(c.from, c.to)), HasSubstr(c.error));
  }
}

TEST(ParseRunFile, RelationsNameLineAndKey) {
  EXPECT_THAT(ErrorOf(Changed("heads: 4", "heads: 3")),
              HasSubstr("first.yaml:2: 'model.heads': must divide model.hidden (128), got 3"));
  EXPECT_THAT(ErrorOf(Changed("micro_batch: 4 ", "micro_batch: 5 ")),
              HasSubstr("first.yaml:7: 'train.micro_batch': must divide train.global_batch (32)"));
  EXPECT_THAT(ErrorOf(Changed("warmup_steps: 20", "warmup_steps: 201")),
              HasSubstr("first.yaml:9: 'train.schedule.warmup_steps': must be at most"));
  EXPECT_THAT(ErrorOf(Changed("min_learning_rate: 1.0e-4", "min_learning_rate: 1.0")),
              HasSubstr("first.yaml:9: 'train.schedule.min_learning_rate': must be at most"));
  EXPECT_THAT(ErrorOf(Changed("validation_fraction: 0.1", "validation_fraction: 0")),
              HasSubstr("first.yaml:11: 'train.evaluate_every'"));
  EXPECT_THAT(ErrorOf(Changed("stages: auto", "stages: 64")),
              HasSubstr("first.yaml:12: 'pipeline.stages': must be at most 63, since"));
  EXPECT_THAT(ErrorOf(Changed("name: first", "name: ../first")), HasSubstr("first.yaml:1: 'name'"));
}

TEST(ParseRunFile, ReadsALlama) {
  const auto spec = ParseRunFile(
      Changed("family: gpt2,",
              "family: llama, kv_heads: 2, ffn: 344, qkv_bias: true, norm_epsilon: 1e-6, "
              "rope_theta: 500000, dropout: 0.1, rope_scaling: {factor: 8, original_context: 64},"),
      "first.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model.family, "llama");
  EXPECT_EQ(spec->model.kv_heads, 2);
  EXPECT_EQ(spec->model.ffn, 344);
  EXPECT_TRUE(spec->model.qkv_bias);
  EXPECT_EQ(spec->model.norm_epsilon, 1e-6);
  EXPECT_EQ(spec->model.rope_theta, 500000);
  EXPECT_EQ(spec->model.rope_scaling.factor, 8);
  EXPECT_EQ(spec->model.rope_scaling.original_context, 64);
  EXPECT_EQ(spec->model.dropout, 0.1);
  const auto stored = FromJson(ToJson(*spec));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(*stored, *spec);
}

TEST(ParseRunFile, KeysThatTheFamilyDoesNotHaveAreRefused) {
  EXPECT_THAT(ErrorOf(Changed("heads: 4", "heads: 4, kv_heads: 2")),
              HasSubstr("first.yaml:2: 'model.kv_heads': gpt2 has as many heads of keys as of "
                        "queries; remove the key"));
  EXPECT_THAT(ErrorOf(Changed("heads: 4", "heads: 4, rope_theta: 5000")),
              HasSubstr("first.yaml:2: 'model.rope_theta': gpt2 learns its positions"));
  EXPECT_THAT(ErrorOf(Changed("family: gpt2, layers: 6, hidden: 128, heads: 4",
                              "family: llama, layers: 6, hidden: 12, heads: 4")),
              HasSubstr("'model.heads': model.hidden 12 / 4 gives heads of 3 columns"));
  EXPECT_THAT(ErrorOf(Changed("heads: 4", "heads: 4, dropout: 1")),
              HasSubstr("first.yaml:2: 'model.dropout'"));
}

// A row of the table in docs/formats.md.
struct DocumentedKey {
  std::string value, default_value;
};

std::map<std::string, DocumentedKey> DocumentedKeys() {
  std::map<std::string, DocumentedKey> keys;
  std::ifstream file("docs/formats.md");
  bool is_ours = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) is_ours = line == "## A run's file";
    if (!is_ours || line.rfind("| `", 0) != 0) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    EXPECT_EQ(cells.size(), 3u) << line;
    const std::string key = cells[0].substr(3, cells[0].size() - 4);
    EXPECT_TRUE(keys.emplace(key, DocumentedKey{cells.at(1), cells.at(2)}).second) << line;
  }
  return keys;
}

TEST(RunFileDocumentation, HasEveryKeyWithItsRangeAndWords) {
  std::map<std::string, DocumentedKey> documented = DocumentedKeys();
  RunSpec spec;
  for (const Field& field : FileFields(spec)) {
    const auto found = documented.find(field.key);
    ASSERT_NE(found, documented.end()) << field.key;
    const auto& [value, default_value] = found->second;
    EXPECT_EQ(default_value == "needed |", field.presence == Presence::kRequired) << field.key;
    std::vector<std::string> parts;
    if (const auto* whole = std::get_if<Whole>(&field.target)) {
      EXPECT_THAT(value, HasSubstr(absl::StrCat(whole->min))) << field.key;
      parts = {absl::StrCat(" to ", whole->max)};
      if (!whole->zero_word.empty()) parts.push_back(absl::StrCat("`", whole->zero_word, "`"));
      const std::string initial = *whole->value == 0 && !whole->zero_word.empty()
                                      ? whole->zero_word
                                      : absl::StrCat(*whole->value);
      if (field.presence == Presence::kOptional) {
        EXPECT_THAT(default_value, HasSubstr(initial)) << field.key;
      }
    } else if (const auto* text = std::get_if<Text>(&field.target)) {
      for (const std::string& word : text->choices) parts.push_back(absl::StrCat("`", word, "`"));
      if (!parts.empty()) {
        EXPECT_THAT(default_value, HasSubstr(*text->value)) << field.key;
      }
    } else if (const auto* choice = std::get_if<Choice>(&field.target)) {
      for (const std::string& word : choice->words) parts.push_back(absl::StrCat("`", word, "`"));
      EXPECT_THAT(default_value, HasSubstr(choice->words[choice->get()])) << field.key;
    } else if (const auto* flag = std::get_if<Flag>(&field.target)) {
      EXPECT_EQ(default_value, *flag->value ? "true |" : "false |") << field.key;
    } else if (const auto* real = std::get_if<Real>(&field.target)) {
      double initial = -1;
      EXPECT_TRUE(absl::SimpleAtod(absl::StripSuffix(default_value, " |"), &initial)) << field.key;
      EXPECT_EQ(initial, *real->value) << field.key;
    }
    for (const std::string& part : parts) EXPECT_THAT(value, HasSubstr(part)) << field.key;
    documented.erase(found);
  }
  for (const auto& [key, row] : documented) ADD_FAILURE() << "there is no key " << key;
}

TEST(ParseRunFile, ReadsAGraphBesideTheRunsFile) {
  const TestFolder test_folder("run-graph");
  const std::string& folder = test_folder.path();
  model::ModelSpec llama = ExampleSpec().model;
  llama.family = "llama";
  llama.context = 16;
  std::ofstream(folder + "/graph.json") << model::GraphToJson(*model::BuildGraph(llama));
  const std::string model =
      "{family: gpt2, layers: 6, hidden: 128, heads: 4, context: 128, vocab: 256}";
  const auto spec =
      ParseRunFile(Changed(model, "{graph: graph.json}"), absl::StrCat(folder, "/first.yaml"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model.context, 16);
  EXPECT_EQ(spec->model.vocab, 256);
  const auto stored = FromJson(ToJson(*spec));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(*stored, *spec);
  EXPECT_THAT(ErrorOf(Changed(model, "{graph: graph.json, layers: 6}")),
              HasSubstr("first.yaml:2: 'model.layers' contradicts 'model.graph'"));
  EXPECT_THAT(ErrorOf(Changed(model, "{graph: }")), HasSubstr("first.yaml:2: 'model.graph'"));
}

TEST(ParseRunFile, ReadsAModelOfHuggingFace) {
  const TestFolder test_folder("run-from");
  const std::string& folder = test_folder.path();
  std::filesystem::create_directories(folder + "/model");
  const model::ModelSpec gpt2 = ExampleSpec().model;
  std::ofstream(folder + "/model/config.json") << model::HuggingFaceConfig(gpt2);
  const auto parse = [&](const std::string& model) {
    return ParseRunFile(
        Changed("{family: gpt2, layers: 6, hidden: 128, heads: 4, context: 128, vocab: 256}",
                model),
        absl::StrCat(folder, "/first.yaml"));
  };
  const auto error = [&](const std::string& model) {
    return std::string(parse(model).status().message());
  };
  const auto spec = parse("{from: model}");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model, gpt2);
  EXPECT_EQ(spec->from, "model");
  const auto shorter = parse("{from: model, context: 64, dropout: 0.1}");
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_EQ(shorter->model.context, 64);
  EXPECT_EQ(shorter->model.dropout, 0.1);
  const auto stored = FromJson(ToJson(*shorter));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(*stored, *shorter);
  EXPECT_THAT(error("{from: model, layers: 6}"),
              HasSubstr("first.yaml:2: 'model.layers' contradicts 'model.from'"));
  EXPECT_THAT(error("{from: model, graph: x}"), HasSubstr("'model.from' contradicts"));
  EXPECT_THAT(error("{from: model, context: 256}"),
              HasSubstr("first.yaml:2: 'model.context': must be at most 128"));
  EXPECT_THAT(error("{from: absent}"), HasSubstr("/absent/config.json"));
  EXPECT_THAT(error("{from: ''}"), HasSubstr("'model.from': must name a folder"));
  std::ofstream(folder + "/model/config.json") << R"({"model_type": "opt"})";
  EXPECT_THAT(error("{from: model}"),
              AllOf(HasSubstr("first.yaml:2: 'model.from'"), HasSubstr("'model_type' must be")));
}

TEST(ParseRunFile, TokenizersFilesAreNamesWithAddresses) {
  RunSpec spec = ExampleSpec();
  spec.tokenizer_files = {absl::StrCat("tokenizer.json ", std::string(64, 'a'))};
  EXPECT_TRUE(Validate(spec).ok());
  EXPECT_EQ(*FromJson(ToJson(spec)), spec);
  for (const std::string bad : {"tokenizer.json", "tokenizer.json abc", "../x "}) {
    spec.tokenizer_files = {bad + (bad == "../x " ? std::string(64, 'a') : "")};
    EXPECT_THAT(Validate(spec).message(), HasSubstr("tokenizer_files"));
  }
}

TEST(ParseRunFile, BombsAndBrokenFilesAreRefused) {
  EXPECT_THAT(ErrorOf(Changed("seed: 1", "seed: &a 1")), HasSubstr("first.yaml:10: anchors"));
  EXPECT_THAT(ErrorOf(Changed("seed: 1", "steps: 1")), HasSubstr("first.yaml:10: the key 'steps'"));
  EXPECT_THAT(ErrorOf(Changed("[0.9, 0.95]", "[0.9, 0.95")), HasSubstr("first.yaml:"));
  EXPECT_THAT(ErrorOf(std::string(2 << 20, '#')), HasSubstr("first.yaml has"));
  // Every prefix of the file is read or refused, never worse.
  const std::string text = kExampleYaml;
  for (size_t length = 0; length < text.size(); ++length) {
    (void)ParseRunFile(text.substr(0, length), "first.yaml");
  }
}

TEST(RunFile, ReadsReplicas) {
  const auto read = [](const std::string& text) {
    return ParseRunFile(Changed("stages: auto", text), "first.yaml");
  };
  EXPECT_EQ(read("replicas: 2, exact_replicas: true")->replicas, (std::vector<int64_t>{2}));
  EXPECT_TRUE(read("replicas: 2, exact_replicas: true")->exact_replicas);
  EXPECT_EQ(read("replicas: auto")->replicas, (std::vector<int64_t>{0}));
  EXPECT_EQ(read("stages: 2, replicas: [1, 3]")->replicas, (std::vector<int64_t>{1, 3}));
  for (const char* bad : {"replicas: 0", "replicas: []", "replicas: [auto, 2]", "replicas: -1",
                          "stages: 2, replicas: [1, 0]"}) {
    const absl::Status status = read(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("first.yaml:12: 'pipeline.replicas'"));
  }
}

TEST(RunFile, ReadsPrecisionAndNumericClass) {
  const auto read = [](const std::string& from, const std::string& to) {
    return ParseRunFile(Changed(from, to), "first.yaml");
  };
  EXPECT_EQ(read("seed: 1", "seed: 1")->train.precision, model::Precision::kBFloat16);
  EXPECT_EQ(read("seed: 1", "precision: bf16")->train.precision, model::Precision::kBFloat16);
  EXPECT_EQ(read("seed: 1", "precision: fp32")->train.precision, model::Precision::kFloat32);
  EXPECT_FALSE(read("stages: auto", "numeric_class: one")->any_numeric_class);
  EXPECT_TRUE(read("stages: auto", "numeric_class: any")->any_numeric_class);
  EXPECT_THAT(
      std::string(read("seed: 1", "precision: fp16").status().message()),
      HasSubstr("first.yaml:10: 'train.precision': expected one of fp32, bf16, got 'fp16'"));
  EXPECT_THAT(
      std::string(read("stages: auto", "numeric_class: cpu").status().message()),
      HasSubstr("first.yaml:12: 'pipeline.numeric_class': expected one of one, any, got 'cpu'"));
}

}  // namespace
}  // namespace longhaul::run
