#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "model/graph_json.h"
#include "model/hugging_face.h"
#include "run/run_fields.h"
#include "run/run_spec.h"

namespace longhaul::run {
namespace {

// The value of a key, or null.
const YamlNode* Find(const YamlNode& map, absl::string_view name) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].name == name) return &map.items[i];
  }
  return nullptr;
}

// A key that says all about the model, and the keys that may stand beside it.
struct WholeModel {
  const YamlNode* model = nullptr;
  std::string key;  // "graph", "from"; empty: the model is a family's
  std::vector<std::string> others;
};

WholeModel FindWholeModel(const YamlNode& root) {
  const YamlNode* const model = Find(root, "model");
  if (model == nullptr) return {};
  if (Find(*model, "graph") != nullptr) return {model, "graph", {}};
  if (Find(*model, "from") != nullptr) return {model, "from", {"context", "dropout"}};
  return {};
}

absl::Status CheckIsAlone(const WholeModel& whole, absl::string_view file_name) {
  for (const YamlKey& key : whole.model->keys) {
    const auto& others = whole.others;
    if (key.name == whole.key) continue;
    if (std::find(others.begin(), others.end(), key.name) != others.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(FileLine(file_name, key.line), ": 'model.", key.name, "' contradicts 'model.",
                     whole.key, "', which says all about the model",
                     others.empty() ? "" : " but context and dropout", "; remove one"));
  }
  return absl::OkStatus();
}

// Puts the graph in place of its file's name.
absl::Status LoadGraph(const KeyLines& lines, absl::string_view file_name, RunSpec& spec) {
  const std::filesystem::path folder = std::filesystem::path(std::string(file_name)).parent_path();
  const std::string path = (folder / spec.model.graph).lexically_normal().string();
  const std::string where = absl::StrCat(lines.Where("model.graph"), ": 'model.graph': ", path);
  const absl::StatusOr<std::string> json = ReadFile(path, model::kGraphBytesMax);
  if (!json.ok()) return Annotate(json.status(), where);
  absl::StatusOr<model::ModelSpec> model = model::SpecOfGraph(*json);
  if (!model.ok()) return Annotate(model.status(), where);
  spec.model = *std::move(model);
  return absl::OkStatus();
}

// The model of a Hugging Face directory, or of one that was exported from a graph.
absl::StatusOr<model::ModelSpec> ReadDirectory(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const absl::StatusOr<std::string> config = ReadFile(path, model::kHuggingFaceConfigBytesMax);
  if (config.ok()) {
    auto spec = model::SpecOfHuggingFace(*config);
    return spec.ok() ? spec : Annotate(spec.status(), path);
  }
  if (!absl::IsNotFound(config.status())) return config.status();
  const std::string graph_path = directory + "/graph.json";
  const absl::StatusOr<std::string> graph = ReadFile(graph_path, model::kGraphBytesMax);
  if (!graph.ok()) return config.status();
  auto spec = model::SpecOfGraph(*graph);
  return spec.ok() ? spec : Annotate(spec.status(), graph_path);
}

// Fills in the model from the directory; keeps the keys that may stand beside it.
absl::Status LoadFrom(const WholeModel& whole, const KeyLines& lines, absl::string_view file_name,
                      RunSpec& spec) {
  if (spec.from.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        lines.Where("model.from"), ": 'model.from': must name a folder with config.json"));
  }
  const std::filesystem::path folder = std::filesystem::path(std::string(file_name)).parent_path();
  const std::string directory = (folder / spec.from).lexically_normal().string();
  absl::StatusOr<model::ModelSpec> model = ReadDirectory(directory);
  if (!model.ok()) {
    return Annotate(model.status(), absl::StrCat(lines.Where("model.from"), ": 'model.from'"));
  }
  for (const std::string& key : whole.others) {
    if (model->graph.empty() || Find(*whole.model, key) == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(lines.Where("model." + key), ": 'model.", key,
                     "' contradicts 'model.from', whose graph.json says all about the model"));
  }
  const int64_t context = spec.model.context;
  if (context > model->context) {
    return absl::InvalidArgumentError(
        absl::StrCat(lines.Where("model.context"), ": 'model.context': must be at most ",
                     model->context, ", the context of 'model.from', got ", context));
  }
  if (context > 0) model->context = context;
  model->dropout = spec.model.dropout;
  spec.model = *std::move(model);
  return absl::OkStatus();
}

// Where the model is another file's, `named`, the sizes in a message are not in the run's file.
absl::Status ProblemStatus(const Problem& problem, const WholeModel& whole,
                           const std::string& named, const KeyLines& lines) {
  const bool about_model =
      problem.key.rfind("model", 0) == 0 || problem.message.find("model.") != std::string::npos;
  const std::string source =
      about_model && !whole.key.empty()
          ? absl::StrCat(" (the model is that of 'model.", whole.key, "', ", named, ")")
          : "";
  return absl::InvalidArgumentError(
      absl::StrCat(lines.Where(problem.key), ": '", problem.key, "': ", problem.message, source));
}

}  // namespace

absl::StatusOr<RunSpec> ParseRunFile(absl::string_view yaml, absl::string_view file_name) {
  RunSpec spec;
  LH_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(yaml, file_name));
  const WholeModel whole = FindWholeModel(root);
  std::vector<Field> fields = FileFields(spec);
  if (!whole.key.empty()) {
    LH_RETURN_IF_ERROR(CheckIsAlone(whole, file_name));
    for (Field& field : fields) {
      if (field.key.rfind("model.", 0) == 0) field.presence = Presence::kOptional;
    }
  }
  LH_ASSIGN_OR_RETURN(const KeyLines lines, ReadFields(root, file_name, fields));
  const std::string named = whole.key == "graph" ? spec.model.graph : spec.from;
  if (whole.key == "graph") LH_RETURN_IF_ERROR(LoadGraph(lines, file_name, spec));
  if (whole.key == "from") {
    LH_RETURN_IF_ERROR(LoadFrom(whole, lines, file_name, spec));
  }
  if (const std::optional<Problem> problem = FindProblem(spec)) {
    return ProblemStatus(*problem, whole, named, lines);
  }
  return spec;
}

}  // namespace longhaul::run
