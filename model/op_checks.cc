#include "model/op_checks.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "model/limits.h"
#include "model/op_kinds.h"
#include "model/rotary_limits.h"

namespace longhaul::model {
namespace {

template <typename... Pieces>
absl::Status Invalid(const Op& op, const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat("operator '", op.name, "'", pieces...));
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckWidth(const Graph& graph, const Op& op, int edge, int64_t width) {
  if (graph.edges[edge].width == width) return absl::OkStatus();
  return Invalid(op, " needs edge '", graph.edges[edge].name, "' of width ", width, ", but it is ",
                 graph.edges[edge].width);
}

// After this, heads + 2 * kv_heads cannot overflow.
absl::Status CheckHeads(const Op& op) {
  if (op.heads < 1 || op.heads > kWidthMax) {
    return Invalid(op, " has ", op.heads, " heads; it must be from 1 to ", kWidthMax);
  }
  if (op.kv_heads < 1 || op.kv_heads > op.heads || op.heads % op.kv_heads != 0) {
    return Invalid(op, ": ", op.kv_heads, " key-value heads do not divide ", op.heads, " heads");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNothing(const Graph&, const Op&) { return absl::OkStatus(); }

absl::Status CheckNorm(const Graph& graph, const Op& op) {
  LH_RETURN_IF_ERROR(CheckSameWidth(graph, op));
  if (op.epsilon > 0 && op.epsilon < 1) return absl::OkStatus();
  return Invalid(op, " needs an epsilon between 0 and 1, not ", op.epsilon);
}

absl::Status CheckSameWidth(const Graph& graph, const Op& op) {
  const int64_t width = graph.edges[op.output].width;
  for (int input : op.inputs) LH_RETURN_IF_ERROR(CheckWidth(graph, op, input, width));
  return absl::OkStatus();
}

absl::Status CheckSwiGlu(const Graph& graph, const Op& op) {
  return CheckWidth(graph, op, op.inputs[0], 2 * graph.edges[op.output].width);
}

absl::Status CheckRotary(const Graph& graph, const Op& op) {
  LH_RETURN_IF_ERROR(CheckSameWidth(graph, op));
  LH_RETURN_IF_ERROR(CheckHeads(op));
  const int64_t width = graph.edges[op.output].width;
  const int64_t packed = op.heads + 2 * op.kv_heads;
  if (width % packed != 0 || width / packed % 2 != 0) {
    return Invalid(op, ": width ", width, " is not ", packed, " heads (", op.heads, " + 2 * ",
                   op.kv_heads, ") of an even width");
  }
  const RotaryScaling& scaling = op.rotary.scaling;
  if (!(op.rotary.theta > 1 && op.rotary.theta <= kRotaryThetaMax)) {
    return Invalid(op, " needs a theta above 1 and at most ", kRotaryThetaMax, ", not ",
                   op.rotary.theta);
  }
  if (!(scaling.factor >= 1 && scaling.factor <= kRotaryFactorMax)) {
    return Invalid(op, " needs a scaling factor from 1 to ", kRotaryFactorMax, ", not ",
                   scaling.factor);
  }
  if (!(scaling.low_frequency_factor > 0 &&
        scaling.low_frequency_factor < scaling.high_frequency_factor &&
        scaling.high_frequency_factor <= kRotaryFactorMax)) {
    return Invalid(op,
                   " needs a low_frequency_factor above 0 and below the high_frequency_factor, "
                   "which is at most ",
                   kRotaryFactorMax);
  }
  if (scaling.original_context >= 1 && scaling.original_context <= kContextMax) {
    return absl::OkStatus();
  }
  return Invalid(op, " needs an original_context from 1 to ", kContextMax, ", not ",
                 scaling.original_context);
}

absl::Status CheckCausalAttention(const Graph& graph, const Op& op) {
  const int64_t width = graph.edges[op.output].width;
  LH_RETURN_IF_ERROR(CheckHeads(op));
  if (width % op.heads != 0) {
    return Invalid(op, ": ", op.heads, " heads do not divide width ", width);
  }
  return CheckWidth(graph, op, op.inputs[0], width / op.heads * (op.heads + 2 * op.kv_heads));
}

absl::Status CheckDropout(const Graph& graph, const Op& op) {
  LH_RETURN_IF_ERROR(CheckSameWidth(graph, op));
  if (op.probability >= 0 && op.probability < 1) return absl::OkStatus();
  return Invalid(op, " needs a probability of at least 0 and below 1, not ", op.probability);
}

absl::Status CheckLoss(const Graph& graph, const Op& op) {
  return CheckWidth(graph, op, op.inputs[0], graph.vocab);
}

std::vector<int64_t> NoShape(const Graph&, const Op& op, size_t slot) {
  LH_CHECK(false, op.name, " has no parameter ", slot);
}

std::vector<int64_t> EmbeddingShape(const Graph& graph, const Op& op, size_t slot) {
  return {slot == 0 ? graph.vocab : graph.context, graph.edges[op.output].width};
}

std::vector<int64_t> NormShape(const Graph& graph, const Op& op, size_t) {
  return {graph.edges[op.output].width};
}

std::vector<int64_t> LinearShape(const Graph& graph, const Op& op, size_t slot) {
  const int64_t out = graph.edges[op.output].width;
  if (slot == 1) return {out};
  return {out, graph.edges[op.inputs[0]].width};
}

absl::Status CheckParameterShapes(const Graph& graph, const Op& op) {
  for (size_t slot = 0; slot < op.parameters.size(); ++slot) {
    const Parameter& parameter = graph.parameters[op.parameters[slot]];
    const std::vector<int64_t> shape = InfoOf(op.kind).parameter_shape(graph, op, slot);
    if (parameter.shape == shape) continue;
    return Invalid(op, " needs parameter ", slot, " of shape ", ShapeText(shape), ", but '",
                   parameter.name, "' is ", ShapeText(parameter.shape));
  }
  return absl::OkStatus();
}

}  // namespace longhaul::model
