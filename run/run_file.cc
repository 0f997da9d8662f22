#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "model/graph_json.h"
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

// The model as the file says it: a graph, or the keys of a family.
const YamlNode* FindGraphModel(const YamlNode& root) {
  const YamlNode* model = Find(root, "model");
  return model != nullptr && Find(*model, "graph") != nullptr ? model : nullptr;
}

absl::Status CheckGraphIsAlone(const YamlNode& model, absl::string_view file_name) {
  for (const YamlKey& key : model.keys) {
    if (key.name == "graph") continue;
    return absl::InvalidArgumentError(
        absl::StrCat(FileLine(file_name, key.line), ": 'model.", key.name,
                     "' contradicts 'model.graph', which says all about the model; remove one"));
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

}  // namespace

absl::StatusOr<RunSpec> ParseRunFile(absl::string_view yaml, absl::string_view file_name) {
  RunSpec spec;
  LH_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(yaml, file_name));
  const YamlNode* const graph_model = FindGraphModel(root);
  if (graph_model != nullptr) LH_RETURN_IF_ERROR(CheckGraphIsAlone(*graph_model, file_name));
  std::vector<Field> fields = FileFields(spec);
  if (graph_model != nullptr) {
    for (Field& field : fields) {
      if (field.key.rfind("model.", 0) == 0) field.presence = Presence::kOptional;
    }
  }
  LH_ASSIGN_OR_RETURN(const KeyLines lines, ReadFields(root, file_name, fields));
  if (graph_model != nullptr) LH_RETURN_IF_ERROR(LoadGraph(lines, file_name, spec));
  if (const std::optional<Problem> problem = FindProblem(spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat(lines.Where(problem->key), ": '", problem->key, "': ", problem->message));
  }
  return spec;
}

}  // namespace longhaul::run
