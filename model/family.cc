#include "model/family.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "model/graph_json.h"

namespace longhaul::model {
namespace {

struct Family {
  const char* name;
  absl::StatusOr<Graph> (*build)(const ModelSpec&);
};

// A new family is a builder function and one line here.
constexpr Family kFamilies[] = {
    {"gpt2", BuildGpt2},
    {"llama", BuildLlama},
};

}  // namespace

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return names;
}

absl::StatusOr<ModelSpec> SpecOfGraph(absl::string_view json) {
  LH_ASSIGN_OR_RETURN(const Graph graph, GraphFromJson(json));
  ModelSpec spec;
  spec.layers = graph.layers;
  spec.hidden = graph.edges[graph.ops[0].output].width;
  spec.heads = 1;
  spec.context = graph.context;
  spec.vocab = graph.vocab;
  spec.tied = !graph.TiedParameters().empty();
  spec.graph = GraphToJson(graph);
  return spec;
}

absl::StatusOr<Graph> BuildGraph(const ModelSpec& spec) {
  if (!spec.graph.empty()) return GraphFromJson(spec.graph);
  for (const Family& family : kFamilies) {
    if (spec.family == family.name) return family.build(spec);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.family: '", spec.family,
                   "' is not known; use one of: ", absl::StrJoin(FamilyNames(), ", ")));
}

}  // namespace longhaul::model
