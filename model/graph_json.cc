#include "model/graph_json.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "model/limits.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kNameBytesMax = 256;
constexpr size_t kInputsMax = 8;  // of one operator; more than any kind takes
constexpr const char* kInitNames[] = {"zeros", "ones", "normal"};  // in the order of InitKind

using Numbers = absl::flat_hash_map<std::string, int>;  // position, by name

template <typename... Pieces>
absl::Status Invalid(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

absl::StatusOr<std::string> ReadName(const Json& json) {
  LH_ASSIGN_OR_RETURN(std::string name, JsonText(json, "name"));
  if (name.empty() || name.size() > kNameBytesMax) {
    return Invalid("'name' must have 1 to ", kNameBytesMax, " bytes");
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F) {
      return Invalid("'name' must not contain blanks or control characters");
    }
  }
  return name;
}

absl::StatusOr<double> ReadPositive(const Json& json, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const double value, JsonReal(json, key));
  if (std::isfinite(value) && value > 0) return value;
  return Invalid("'", key, "' must be above 0, got ", value);
}

absl::Status ReadInit(const Json& json, Initializer& init) {
  LH_ASSIGN_OR_RETURN(const std::string name, JsonText(json, "init"));
  for (int kind = 0; kind < 3; ++kind) {
    if (name == kInitNames[kind]) init.kind = static_cast<InitKind>(kind);
  }
  if (name != kInitNames[static_cast<int>(init.kind)]) {
    return Invalid("'init' is '", name, "'; use one of: ", absl::StrJoin(kInitNames, ", "));
  }
  if (init.kind != InitKind::kNormal) {
    if (json.contains("standard_deviation")) {
      return Invalid("'standard_deviation' is for init normal only; remove it");
    }
    return absl::OkStatus();
  }
  LH_ASSIGN_OR_RETURN(init.standard_deviation, ReadPositive(json, "standard_deviation"));
  if (init.standard_deviation > kStandardDeviationMax) {
    return Invalid("'standard_deviation' must be at most ", kStandardDeviationMax, ", got ",
                   init.standard_deviation, ": weights drawn with it are no numbers");
  }
  return absl::OkStatus();
}

absl::StatusOr<Parameter> ReadParameter(const Json& json) {
  Parameter parameter;
  LH_ASSIGN_OR_RETURN(parameter.name, ReadName(json));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(json, {"name", "shape", "init", "standard_deviation", "decays"}));
  LH_ASSIGN_OR_RETURN(const Json* shape, JsonArray(json, "shape"));
  if (shape->empty() || shape->size() > 2) return Invalid("'shape' must have 1 or 2 sizes");
  for (const Json& size : *shape) {
    const Json holder = {{"shape", size}};
    LH_ASSIGN_OR_RETURN(parameter.shape.emplace_back(), JsonWhole(holder, "shape", 1, kWidthMax));
  }
  LH_RETURN_IF_ERROR(ReadInit(json, parameter.init));
  LH_ASSIGN_OR_RETURN(parameter.decays, JsonFlag(json, "decays"));
  return parameter;
}

absl::StatusOr<Rotary> ReadRotary(const Json& json) {
  Rotary rotary;
  LH_ASSIGN_OR_RETURN(rotary.theta, ReadPositive(json, "theta"));
  if (!json.contains("scaling")) return rotary;
  LH_ASSIGN_OR_RETURN(const Json* scaling, JsonObject(json, "scaling"));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(
      *scaling, {"factor", "low_frequency_factor", "high_frequency_factor", "original_context"}));
  RotaryScaling& read = rotary.scaling;
  LH_ASSIGN_OR_RETURN(read.factor, ReadPositive(*scaling, "factor"));
  LH_ASSIGN_OR_RETURN(read.low_frequency_factor, ReadPositive(*scaling, "low_frequency_factor"));
  LH_ASSIGN_OR_RETURN(read.high_frequency_factor, ReadPositive(*scaling, "high_frequency_factor"));
  LH_ASSIGN_OR_RETURN(read.original_context,
                      JsonWhole(*scaling, "original_context", 1, kContextMax));
  return rotary;
}

absl::Status ReadAttributes(const Json& json, unsigned attributes, Op& op,
                            std::set<std::string>& known) {
  if (attributes & kHeadsAttribute) {
    LH_ASSIGN_OR_RETURN(op.heads, JsonWhole(json, "heads", 1, kWidthMax));
    known.insert("heads");
  }
  if (attributes & kKvHeadsAttribute) {
    op.kv_heads = op.heads;
    if (json.contains("kv_heads")) {
      LH_ASSIGN_OR_RETURN(op.kv_heads, JsonWhole(json, "kv_heads", 1, kWidthMax));
    }
    known.insert("kv_heads");
  }
  if (attributes & kEpsilonAttribute) {
    LH_ASSIGN_OR_RETURN(op.epsilon, ReadPositive(json, "epsilon"));
    known.insert("epsilon");
  }
  if (attributes & kProbabilityAttribute) {
    LH_ASSIGN_OR_RETURN(op.probability, JsonReal(json, "probability"));
    known.insert("probability");
  }
  if (attributes & kRotaryAttribute) {
    LH_ASSIGN_OR_RETURN(op.rotary, ReadRotary(json));
    known.insert({"theta", "scaling"});
  }
  return absl::OkStatus();
}

// Numbers of the names listed under `key`, if any; `remedy` follows a name that is not known.
absl::Status ReadNames(const Json& json, absl::string_view key, const Numbers& numbers,
                       absl::string_view remedy, std::vector<int>& result) {
  if (!json.contains(key)) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const Json* names, JsonArray(json, key));
  if (names->size() > kInputsMax) return Invalid("'", key, "' has ", names->size(), " names");
  for (const Json& name : *names) {
    if (!name.is_string()) return Invalid("'", key, "' must hold names");
    const auto found = numbers.find(name.get_ref<const std::string&>());
    if (found == numbers.end()) {
      return Invalid("'", key, "' names '", name.get_ref<const std::string&>(), "', ", remedy);
    }
    result.push_back(found->second);
  }
  return absl::OkStatus();
}

// Appends one operator and the edge that it makes.
absl::Status ReadOp(const Json& json, const Numbers& parameters, Numbers& edges, Graph& graph) {
  Op op;
  LH_ASSIGN_OR_RETURN(op.name, ReadName(json));
  LH_ASSIGN_OR_RETURN(const std::string kind, JsonText(json, "op"));
  const OpKindInfo* info = FindOpKind(kind);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const OpKindInfo& known : OpKinds()) names.push_back(known.name);
    return Invalid("operator '", kind, "' is not known; use one of: ", absl::StrJoin(names, ", "));
  }
  op.kind = info->kind;
  std::set<std::string> known = {"name", "op", "layer", "inputs", "parameters"};
  LH_ASSIGN_OR_RETURN(const int64_t layer, JsonWhole(json, "layer", 0, kLayersMax));
  op.layer = static_cast<int>(layer);
  LH_RETURN_IF_ERROR(ReadNames(json, "inputs", edges,
                               "which no operator before this one has made (operators are listed "
                               "in the order of execution, and there are no cycles)",
                               op.inputs));
  LH_RETURN_IF_ERROR(ReadNames(json, "parameters", parameters,
                               "which is not among the graph's parameters", op.parameters));
  LH_RETURN_IF_ERROR(ReadAttributes(json, info->attributes, op, known));
  if (info->has_output) {
    LH_ASSIGN_OR_RETURN(const int64_t width, JsonWhole(json, "width", 1, kWidthMax));
    known.insert("width");
    op.output = static_cast<int>(graph.edges.size());
    graph.edges.push_back({op.name, width});
    if (!edges.emplace(op.name, op.output).second) {
      return Invalid("two operators are named '", op.name, "'");
    }
  }
  LH_RETURN_IF_ERROR(JsonOnlyKeys(json, known));
  graph.ops.push_back(std::move(op));
  return absl::OkStatus();
}

// "parameters[3] 'w'", for messages.
std::string Where(absl::string_view list, size_t index, const Json& element) {
  std::string where = absl::StrCat(list, "[", index, "]");
  const absl::StatusOr<std::string> name = JsonText(element, "name");
  if (name.ok()) absl::StrAppend(&where, " '", name->substr(0, kNameBytesMax), "'");
  return where;
}

absl::Status ReadLists(const Json& root, Graph& graph) {
  LH_ASSIGN_OR_RETURN(const Json* parameters, JsonArray(root, "parameters"));
  Numbers numbers, edges;
  for (const Json& element : *parameters) {
    absl::StatusOr<Parameter> parameter = ReadParameter(element);
    const std::string where = Where("parameters", graph.parameters.size(), element);
    if (!parameter.ok()) return Annotate(parameter.status(), where);
    if (!numbers.emplace(parameter->name, static_cast<int>(graph.parameters.size())).second) {
      return Invalid("two parameters are named '", parameter->name, "'");
    }
    graph.parameters.push_back(*std::move(parameter));
  }
  LH_ASSIGN_OR_RETURN(const Json* ops, JsonArray(root, "ops"));
  for (const Json& element : *ops) {
    const std::string where = Where("ops", graph.ops.size(), element);
    LH_RETURN_IF_ERROR(Annotate(ReadOp(element, numbers, edges, graph), where));
  }
  return absl::OkStatus();
}

Json ParameterJson(const Parameter& parameter) {
  Json json = {{"name", parameter.name},
               {"shape", parameter.shape},
               {"init", kInitNames[static_cast<int>(parameter.init.kind)]},
               {"decays", parameter.decays}};
  if (parameter.init.kind == InitKind::kNormal) {
    json["standard_deviation"] = parameter.init.standard_deviation;
  }
  return json;
}

Json OpJson(const Graph& graph, const Op& op) {
  const OpKindInfo& info = InfoOf(op.kind);
  Json json = {{"op", info.name}, {"name", op.name}, {"layer", op.layer}};
  for (const int edge : op.inputs) json["inputs"].push_back(graph.edges[edge].name);
  for (const int index : op.parameters) json["parameters"].push_back(graph.parameters[index].name);
  if (info.has_output) {
    LH_CHECK(graph.edges[op.output].name == op.name, "operator ", op.name, " makes edge ",
             graph.edges[op.output].name);
    json["width"] = graph.edges[op.output].width;
  }
  if (info.attributes & kHeadsAttribute) json["heads"] = op.heads;
  if (info.attributes & kKvHeadsAttribute) json["kv_heads"] = op.kv_heads;
  if (info.attributes & kEpsilonAttribute) json["epsilon"] = op.epsilon;
  if (info.attributes & kProbabilityAttribute) json["probability"] = op.probability;
  if (info.attributes & kRotaryAttribute) {
    const RotaryScaling& scaling = op.rotary.scaling;
    json["theta"] = op.rotary.theta;
    json["scaling"] = {{"factor", scaling.factor},
                       {"low_frequency_factor", scaling.low_frequency_factor},
                       {"high_frequency_factor", scaling.high_frequency_factor},
                       {"original_context", scaling.original_context}};
  }
  return json;
}

absl::StatusOr<Graph> ReadGraph(absl::string_view text) {
  LH_ASSIGN_OR_RETURN(const Json root, ParseJson(text, kGraphBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(root, kSchema));
  LH_RETURN_IF_ERROR(
      JsonOnlyKeys(root, {"schema", "vocab", "context", "layers", "parameters", "ops"}));
  Graph graph;
  graph.family = "graph";
  LH_ASSIGN_OR_RETURN(graph.vocab, JsonWhole(root, "vocab", 1, kVocabMax));
  LH_ASSIGN_OR_RETURN(graph.context, JsonWhole(root, "context", 1, kContextMax));
  LH_ASSIGN_OR_RETURN(const int64_t layers, JsonWhole(root, "layers", 1, kLayersMax));
  graph.layers = static_cast<int>(layers);
  LH_RETURN_IF_ERROR(ReadLists(root, graph));
  LH_RETURN_IF_ERROR(graph.Validate());
  return graph;
}

}  // namespace

std::string GraphToJson(const Graph& graph) {
  Json root = {{"schema", kSchema},      {"vocab", graph.vocab},        {"context", graph.context},
               {"layers", graph.layers}, {"parameters", Json::array()}, {"ops", Json::array()}};
  for (const Parameter& parameter : graph.parameters) {
    root["parameters"].push_back(ParameterJson(parameter));
  }
  for (const Op& op : graph.ops) root["ops"].push_back(OpJson(graph, op));
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Graph> GraphFromJson(absl::string_view json) {
  absl::StatusOr<Graph> graph = ReadGraph(json);
  if (!graph.ok()) return Annotate(graph.status(), "the model's graph");
  return graph;
}

}  // namespace longhaul::model
