// Graph::Validate: sizes first, so that nothing later can overflow or index out of range; then the
// order of operators and edges; then one rule for each kind of operator.
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/graph.h"
#include "model/limits.h"
#include "model/op_checks.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

template <typename... Pieces>
absl::Status Invalid(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

absl::Status CheckRange(absl::string_view what, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Invalid(what, " is ", value, "; it must be from ", min, " to ", max);
}

absl::Status CheckParameterSizes(const Graph& graph) {
  int64_t total = 0;
  for (const Parameter& parameter : graph.parameters) {
    if (parameter.shape.empty() || parameter.shape.size() > 2) {
      return Invalid("parameter '", parameter.name, "' must have one or two dimensions, not ",
                     parameter.shape.size());
    }
    int64_t elements = 1;
    for (int64_t size : parameter.shape) {
      LH_RETURN_IF_ERROR(CheckRange(absl::StrCat("a dimension of parameter '", parameter.name, "'"),
                                    size, 1, kWidthMax));
      elements *= size;  // at most kWidthMax squared
    }
    if (elements > kTotalParametersMax - total) {
      return Invalid("the model has more than ", kTotalParametersMax, " parameters");
    }
    total += elements;
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const Graph& graph) {
  LH_RETURN_IF_ERROR(CheckRange("the model's vocabulary", graph.vocab, 1, kVocabMax));
  LH_RETURN_IF_ERROR(CheckRange("the model's context", graph.context, 1, kContextMax));
  LH_RETURN_IF_ERROR(CheckRange("the model's number of layers", graph.layers, 1, kLayersMax));
  LH_RETURN_IF_ERROR(CheckRange("the model's number of operators",
                                static_cast<int64_t>(graph.ops.size()), 2, kOpsMax));
  int64_t total_width = 0;
  for (const Edge& edge : graph.edges) {
    LH_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("the width of edge '", edge.name, "'"), edge.width, 1, kWidthMax));
    if (edge.width > kTotalWidthMax - total_width) {
      return Invalid("the widths of all edges exceed ", kTotalWidthMax);
    }
    total_width += edge.width;
  }
  return CheckParameterSizes(graph);
}

template <typename Named>
absl::Status CheckNames(absl::string_view what, const std::vector<Named>& items) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const Named& item : items) {
    if (item.name.empty()) return Invalid("one of the ", what, "s has no name");
    if (!seen.insert(item.name).second)
      return Invalid("two ", what, "s are named '", item.name, "'");
  }
  return absl::OkStatus();
}

// Checkpoints and exports are safetensors files, where a parameter is a tensor of its name with the
// optimizer's moments beside it (docs/formats.md).
absl::Status CheckStorable(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters) {
    if (parameter.name != "__metadata__" && !absl::EndsWith(parameter.name, ".first_moment") &&
        !absl::EndsWith(parameter.name, ".second_moment")) {
      continue;
    }
    return Invalid("parameter '", parameter.name,
                   "' has a name that checkpoints keep for something else: it must not be "
                   "'__metadata__' nor end in '.first_moment' or '.second_moment'");
  }
  return absl::OkStatus();
}

bool IsIndex(int value, size_t size) { return value >= 0 && value < static_cast<int64_t>(size); }

// Counts and indices of one operator, so that its rule may index freely.
absl::Status CheckArity(const Graph& graph, const Op& op) {
  const OpKindInfo& rule = InfoOf(op.kind);
  if (op.inputs.size() != rule.inputs) {
    return Invalid("operator '", op.name, "' takes ", rule.inputs, " inputs, not ",
                   op.inputs.size());
  }
  if (op.parameters.size() < rule.parameters_min || op.parameters.size() > rule.parameters_max) {
    return Invalid("operator '", op.name, "' takes ", rule.parameters_min, " to ",
                   rule.parameters_max, " parameters, not ", op.parameters.size());
  }
  if (rule.has_output ? !IsIndex(op.output, graph.edges.size()) : op.output != -1) {
    return Invalid("operator '", op.name, "' has output edge ", op.output);
  }
  for (int edge : op.inputs) {
    if (!IsIndex(edge, graph.edges.size())) {
      return Invalid("operator '", op.name, "' has input edge ", edge, ", which does not exist");
    }
  }
  for (int parameter : op.parameters) {
    if (!IsIndex(parameter, graph.parameters.size())) {
      return Invalid("operator '", op.name, "' has parameter ", parameter,
                     ", which does not exist");
    }
  }
  return absl::OkStatus();
}

// Embedding first, loss last, blocks ascending.
absl::Status CheckPlace(const Graph& graph, size_t position) {
  const Op& op = graph.ops[position];
  if ((op.kind == OpKind::kEmbedding) != (position == 0)) {
    return Invalid("operator '", op.name, "': the first operator, and only it, is the embedding");
  }
  if ((op.kind == OpKind::kSoftmaxCrossEntropy) != (position + 1 == graph.ops.size())) {
    return Invalid("operator '", op.name, "': the last operator, and only it, is the loss");
  }
  const int previous = position == 0 ? 0 : graph.ops[position - 1].layer;
  if (op.layer < previous || op.layer > graph.layers) {
    return Invalid("operator '", op.name, "' has layer ", op.layer, "; it must be from ", previous,
                   " to ", graph.layers);
  }
  return absl::OkStatus();
}

// Every edge made once, before its uses, and used; every parameter used.
absl::Status CheckFlow(const Graph& graph) {
  std::vector<bool> made(graph.edges.size(), false), read(graph.edges.size(), false);
  std::vector<bool> used(graph.parameters.size(), false);
  for (const Op& op : graph.ops) {
    for (int edge : op.inputs) {
      if (!made[edge]) {
        return Invalid("operator '", op.name, "' reads edge '", graph.edges[edge].name,
                       "' before it is made");
      }
      read[edge] = true;
    }
    if (op.output >= 0) {
      if (made[op.output]) {
        return Invalid("operator '", op.name, "' makes edge '", graph.edges[op.output].name,
                       "' a second time");
      }
      made[op.output] = true;
    }
    for (int parameter : op.parameters) used[parameter] = true;
  }
  for (size_t edge = 0; edge < read.size(); ++edge) {
    if (!read[edge]) return Invalid("edge '", graph.edges[edge].name, "' is never used");
  }
  for (size_t index = 0; index < used.size(); ++index) {
    if (!used[index]) {
      return Invalid("parameter '", graph.parameters[index].name, "' is never used");
    }
  }
  return absl::OkStatus();
}

// That the loss alone reads the logits follows from CheckFlow: what another reader made would have
// to be read in turn, and the chain can end in the loss only.
absl::Status CheckLogits(const Graph& graph) {
  const Op& loss = graph.ops.back();
  for (const Op& op : graph.ops) {
    if (op.output != loss.inputs[0]) continue;
    if (op.kind != OpKind::kLinear || op.layer != loss.layer) {
      return Invalid("operator '", op.name, "' makes the logits; it must be linear and in layer ",
                     loss.layer, " like the loss");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Graph::Validate() const {
  LH_RETURN_IF_ERROR(CheckSizes(*this));
  LH_RETURN_IF_ERROR(CheckNames("parameter", parameters));
  LH_RETURN_IF_ERROR(CheckStorable(parameters));
  LH_RETURN_IF_ERROR(CheckNames("edge", edges));
  LH_RETURN_IF_ERROR(CheckNames("operator", ops));
  for (size_t position = 0; position < ops.size(); ++position) {
    LH_RETURN_IF_ERROR(CheckArity(*this, ops[position]));
    LH_RETURN_IF_ERROR(CheckPlace(*this, position));
  }
  LH_RETURN_IF_ERROR(CheckFlow(*this));
  for (const Op& op : ops) {
    LH_RETURN_IF_ERROR(InfoOf(op.kind).check(*this, op));
    LH_RETURN_IF_ERROR(CheckParameterShapes(*this, op));
  }
  return CheckLogits(*this);
}

}  // namespace longhaul::model
