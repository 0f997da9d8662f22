#include "model/cost.h"

#include "model/buffer_plan.h"
#include "model/limits.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

// Every input, output and parameter is touched once in forward; backward touches inputs, their
// gradients, the output's gradient, parameters, and each gradient accumulator, which is fp32,
// twice. The embedding touches only its rows of the table.
double BytesMoved(const Graph& graph, const Op& op, double rows, Precision precision) {
  double inputs = 0, parameters = 0;
  for (int edge : op.inputs) inputs += rows * static_cast<double>(graph.edges[edge].width);
  const double output =
      op.output >= 0 ? rows * static_cast<double>(graph.edges[op.output].width) : 0;
  if (InfoOf(op.kind).reads_rows_of_tables) {
    parameters = 2 * output;
  } else {
    for (int index : op.parameters) {
      parameters += static_cast<double>(graph.parameters[index].elements());
    }
  }
  const double forward = inputs + output + parameters;
  const double backward = 2 * inputs + output + parameters;
  return static_cast<double>(ElementBytes(precision)) * (forward + backward) +
         sizeof(float) * 2 * parameters;
}

// a * b, at most kBytesMax; neither is negative.
int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kBytesMax) return kBytesMax;
  return product;
}

}  // namespace

Cost OpCost(const Graph& graph, int op, int64_t micro_batch, Precision precision) {
  const double rows = static_cast<double>(micro_batch) * static_cast<double>(graph.context);
  const OpFlops flops = InfoOf(graph.ops[op].kind).flops(graph, graph.ops[op], rows);
  return {flops.forward, flops.backward, BytesMoved(graph, graph.ops[op], rows, precision)};
}

Cost RangeCost(const Graph& graph, OpRange range, int64_t micro_batch, Precision precision) {
  Cost total;
  for (int op = range.begin; op < range.end; ++op) {
    const Cost cost = OpCost(graph, op, micro_batch, precision);
    total.forward_flops += cost.forward_flops;
    total.backward_flops += cost.backward_flops;
    total.bytes_moved += cost.bytes_moved;
  }
  return total;
}

StageMemory MemoryOf(const Graph& graph, OpRange range, int64_t micro_batch, int slots,
                     bool recompute, Precision precision) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t element_bytes = ElementBytes(precision);
  StageMemory memory;
  for (int index : graph.ParametersOf(range)) {
    memory.weights += kBytes * Padded(graph.parameters[index].elements());
  }
  if (precision == Precision::kBFloat16) {
    memory.working_weights = memory.weights / kBytes * element_bytes;
  }
  memory.optimizer = 2 * memory.weights;
  for (const ParameterUse& use : graph.Uses(range)) {
    memory.gradients += kBytes * Padded(graph.parameters[use.parameter].elements());
  }
  if (micro_batch > kRowsMax / graph.context) {
    memory.activations = memory.scratch = kBytesMax;
    return memory;
  }
  const BufferPlan plan = PlanBuffers(graph, range, micro_batch, recompute, precision);
  const int64_t integer_bytes = static_cast<int64_t>(sizeof(int32_t)) * plan.slot_integers;
  memory.activations = SaturatingProduct(slots, element_bytes * plan.slot_elements + integer_bytes);
  memory.scratch = element_bytes * plan.scratch_elements;
  memory.constants = kBytes * plan.constant_elements;
  return memory;
}

int64_t BoundaryBytes(const Graph& graph, int position, int64_t micro_batch) {
  if (micro_batch > kRowsMax / graph.context) return kBytesMax;
  return static_cast<int64_t>(sizeof(float)) * BoundaryElements(graph, position, micro_batch);
}

}  // namespace longhaul::model
