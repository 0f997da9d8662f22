#include "model/family.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "model/graph_json.h"
#include "model/limits.h"

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

// All of the spec but the graph itself.
ModelSpec KeysOf(const Graph& graph) {
  ModelSpec spec;
  spec.layers = graph.layers;
  spec.hidden = graph.edges[graph.ops[0].output].width;
  spec.heads = 1;
  spec.context = graph.context;
  spec.vocab = graph.vocab;
  spec.tied = !graph.TiedParameters().empty();
  return spec;
}

}  // namespace

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return names;
}

absl::StatusOr<ModelSpec> SpecOfGraph(absl::string_view json) {
  LH_ASSIGN_OR_RETURN(const Graph graph, GraphFromJson(json));
  const Edge& embedded = graph.edges[graph.ops[0].output];
  if (embedded.width > kHiddenMax) {
    return absl::InvalidArgumentError(absl::StrCat("operator '", embedded.name, "': 'width' is ",
                                                   embedded.width, "; the first operator's is at ",
                                                   "most ", kHiddenMax));
  }
  ModelSpec spec = KeysOf(graph);
  spec.graph = GraphToJson(graph);
  if (spec.graph.size() <= kGraphBytesMax) return spec;
  return absl::InvalidArgumentError(absl::StrCat("with every default written out it has ",
                                                 spec.graph.size(), " bytes; at most ",
                                                 kGraphBytesMax, " are allowed"));
}

bool Repeats(const ModelSpec& spec, const Graph& graph) {
  ModelSpec keys = KeysOf(graph);
  keys.graph = spec.graph;
  return spec == keys;
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
