#include "model/cost.h"

#include <algorithm>

#include "base/check.h"
#include "model/attention_blocks.h"
#include "model/buffer_plan.h"
#include "model/limits.h"

namespace longhaul::model {
namespace {

constexpr double kElementBytes = 4;  // fp32

// Floating-point operations for each element, counted in the formulas of compute/ops; a
// transcendental function counts as 10.
constexpr double kLayerNormForward = 8, kLayerNormBackward = 14;
constexpr double kGeluForward = 18, kGeluBackward = 28;
constexpr double kLossForward = 14, kLossBackward = 14;
constexpr double kSoftmaxForward = 14, kSoftmaxBackward = 16;  // by score

Cost LinearFlops(double rows, double in, double out) {
  const double product = 2 * rows * in * out;
  return {product, 2 * product, 0};
}

// Multiplied pairs of query and key, of one sequence: a block of queries meets the keys up to the
// block's end.
double AttendedPairs(int64_t context) {
  double pairs = 0;
  for (int64_t begin = 0; begin < context; begin += kAttentionBlockRows) {
    const int64_t end = std::min(context, begin + kAttentionBlockRows);
    pairs += static_cast<double>(end - begin) * static_cast<double>(end);
  }
  return pairs;
}

// Forward: Q K^T and P V. Backward: Q K^T again, and the gradients of P, V, Q and K.
Cost AttentionFlops(const Graph& graph, const Op& op, double rows) {
  const double width = static_cast<double>(graph.edges[op.output].width);
  const double context = static_cast<double>(graph.context);
  const double product = 2 * rows / context * AttendedPairs(graph.context) * width;
  const double scores = rows * (context + 1) / 2 * static_cast<double>(op.heads);
  return {2 * product + scores * kSoftmaxForward, 5 * product + scores * kSoftmaxBackward, 0};
}

Cost Flops(const Graph& graph, const Op& op, double rows) {
  const int edge = op.output >= 0 ? op.output : op.inputs[0];
  const double elements = rows * static_cast<double>(graph.edges[edge].width);
  switch (op.kind) {
    case OpKind::kEmbedding:
      return {elements, 2 * elements, 0};
    case OpKind::kLayerNorm:
      return {elements * kLayerNormForward, elements * kLayerNormBackward, 0};
    case OpKind::kLinear:
      return LinearFlops(rows, static_cast<double>(graph.edges[op.inputs[0]].width),
                         static_cast<double>(graph.edges[op.output].width));
    case OpKind::kGelu:
      return {elements * kGeluForward, elements * kGeluBackward, 0};
    case OpKind::kCausalAttention:
      return AttentionFlops(graph, op, rows);
    case OpKind::kAdd:
      return {elements, elements, 0};  // backward: the sum of the gradients where it forked
    case OpKind::kSoftmaxCrossEntropy:
      return {elements * kLossForward, elements * kLossBackward, 0};
  }
  LH_CHECK(false, "operator kind ", static_cast<int>(op.kind));
}

// Every input, output and parameter is touched once in forward; backward touches inputs, their
// gradients, the output's gradient, parameters, and each gradient accumulator twice. The embedding
// touches only its rows of the table.
double BytesMoved(const Graph& graph, const Op& op, double rows) {
  double inputs = 0, parameters = 0;
  for (int edge : op.inputs) inputs += rows * static_cast<double>(graph.edges[edge].width);
  const double output =
      op.output >= 0 ? rows * static_cast<double>(graph.edges[op.output].width) : 0;
  if (op.kind == OpKind::kEmbedding) {
    parameters = 2 * output;
  } else {
    for (int index : op.parameters) {
      parameters += static_cast<double>(graph.parameters[index].elements());
    }
  }
  const double forward = inputs + output + parameters;
  const double backward = 2 * inputs + output + 3 * parameters;
  return kElementBytes * (forward + backward);
}

// a * b, at most kBytesMax; neither is negative.
int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kBytesMax) return kBytesMax;
  return product;
}

}  // namespace

Cost OpCost(const Graph& graph, int op, int64_t micro_batch) {
  const double rows = static_cast<double>(micro_batch) * static_cast<double>(graph.context);
  Cost cost = Flops(graph, graph.ops[op], rows);
  cost.bytes_moved = BytesMoved(graph, graph.ops[op], rows);
  return cost;
}

Cost RangeCost(const Graph& graph, OpRange range, int64_t micro_batch) {
  Cost total;
  for (int op = range.begin; op < range.end; ++op) {
    const Cost cost = OpCost(graph, op, micro_batch);
    total.forward_flops += cost.forward_flops;
    total.backward_flops += cost.backward_flops;
    total.bytes_moved += cost.bytes_moved;
  }
  return total;
}

StageMemory MemoryOf(const Graph& graph, OpRange range, int64_t micro_batch, int slots) {
  constexpr int64_t kBytes = sizeof(float);
  StageMemory memory;
  for (int index : graph.ParametersOf(range)) {
    memory.weights += kBytes * Padded(graph.parameters[index].elements());
  }
  memory.optimizer = 2 * memory.weights;
  for (const ParameterUse& use : graph.Uses(range)) {
    memory.gradients += kBytes * Padded(graph.parameters[use.parameter].elements());
  }
  if (micro_batch > kRowsMax / graph.context) {
    memory.activations = memory.scratch = kBytesMax;
    return memory;
  }
  const BufferPlan plan = PlanBuffers(graph, range, micro_batch);
  static_assert(sizeof(int32_t) == kBytes);
  memory.activations = SaturatingProduct(slots, kBytes * (plan.slot_elements + plan.slot_integers));
  memory.scratch = kBytes * plan.scratch_elements;
  return memory;
}

int64_t BoundaryBytes(const Graph& graph, int position, int64_t micro_batch) {
  const int64_t width = graph.edges[graph.CutEdge(position)].width;
  const int64_t row_bytes = static_cast<int64_t>(sizeof(float)) * width;
  return SaturatingProduct(micro_batch, graph.context * row_bytes);
}

}  // namespace longhaul::model
