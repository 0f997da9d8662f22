#include "coordinator/plan/cost_model.h"

#include <algorithm>

#include "coordinator/plan/device.h"
#include "model/buffer_plan.h"
#include "model/limits.h"

namespace longhaul::coordinator {
namespace {

// Backward reads the operator's inputs and the output's gradient and writes the inputs' gradients:
// twice what forward moves.
constexpr double kForwardShareOfBytes = 1.0 / 3;

// Passes over the fp32 weights: read weight, gradient and both moments, write weight and moments,
// and clear the gradient. Working weights are written once.
constexpr double kOptimizerPasses = 8;

// By edge: the operator that makes it.
std::vector<int> MakersOf(const model::Graph& graph) {
  std::vector<int> makers(graph.edges.size(), -1);
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (graph.ops[op].output >= 0) makers[graph.ops[op].output] = static_cast<int>(op);
  }
  return makers;
}

// Whether operator `b` computes on what it finds as operator `a` does.
bool OpsAlike(const model::Graph& graph, const std::vector<int>& makers, int a, int b) {
  const model::Op& left = graph.ops[a];
  const model::Op& right = graph.ops[b];
  if (left.kind != right.kind || left.heads != right.heads || left.kv_heads != right.kv_heads ||
      left.layer - graph.ops[a - 1].layer != right.layer - graph.ops[b - 1].layer ||
      left.inputs.size() != right.inputs.size() ||
      left.parameters.size() != right.parameters.size() || left.output < 0 || right.output < 0 ||
      graph.edges[left.output].width != graph.edges[right.output].width) {
    return false;
  }
  for (size_t i = 0; i < left.inputs.size(); ++i) {
    if (a - makers[left.inputs[i]] != b - makers[right.inputs[i]] ||
        graph.edges[left.inputs[i]].width != graph.edges[right.inputs[i]].width) {
      return false;
    }
  }
  for (size_t i = 0; i < left.parameters.size(); ++i) {
    if (graph.parameters[left.parameters[i]].elements() !=
        graph.parameters[right.parameters[i]].elements()) {
      return false;
    }
  }
  return true;
}

// A pattern of at most so many units is looked for.
constexpr int kPeriodMax = 64;

// The end of the units from 1 on that repeat every `period`. `positions`: of the units' first
// operators, and the end; `bytes`: over the cut in front of each unit.
int AlikeEnd(const model::Graph& graph, const std::vector<int>& makers,
             const std::vector<int>& positions, const std::vector<double>& bytes, int period) {
  const int units = static_cast<int>(positions.size()) - 1;
  int unit = 1 + period;
  for (; unit + 1 < units; ++unit) {
    const int begin = positions[unit], before = positions[unit - period];
    if (positions[unit + 1] - begin != positions[unit - period + 1] - before ||
        bytes[unit] != bytes[unit - period] || bytes[unit + 1] != bytes[unit - period + 1]) {
      break;
    }
    int op = begin;
    while (op < positions[unit + 1] && OpsAlike(graph, makers, op - (begin - before), op)) ++op;
    if (op < positions[unit + 1]) break;
  }
  return std::min(unit, units - 1);
}

bool HasTied(const model::Graph& graph, model::OpRange range) {
  const std::vector<int> inner = graph.ParametersOf(range);
  for (const int tied : graph.TiedParameters()) {
    if (std::binary_search(inner.begin(), inner.end(), tied)) return true;
  }
  return false;
}

}  // namespace

double TiedBytes(const model::Graph& graph, model::OpRange first, model::OpRange last) {
  const std::vector<int> of_first = graph.ParametersOf(first);
  const std::vector<int> of_last = graph.ParametersOf(last);
  double bytes = 0;
  for (const int tied : graph.TiedParameters()) {
    if (std::binary_search(of_first.begin(), of_first.end(), tied) &&
        std::binary_search(of_last.begin(), of_last.end(), tied)) {
      bytes += sizeof(float) * static_cast<double>(graph.parameters[tied].elements());
    }
  }
  return bytes;
}

Units::Units(const model::Graph& graph, int64_t micro_batch, const std::vector<int>& cuts,
             const std::vector<double>& cut_bytes)
    : graph_(graph), micro_batch_(micro_batch) {
  positions_.push_back(0);
  cut_bytes_.push_back(0);
  for (const int position : cuts) {
    positions_.push_back(position);
    cut_bytes_.push_back(cut_bytes[position]);
    even_cuts_ = even_cuts_ && cut_bytes[position] == cut_bytes[cuts.front()];
  }
  positions_.push_back(static_cast<int>(graph.ops.size()));
  cut_bytes_max_ = *std::max_element(cut_bytes_.begin(), cut_bytes_.end());

  cut_bytes_.push_back(0);  // behind the last unit, for the comparison
  const std::vector<int> makers = MakersOf(graph);
  for (int period = 1; period <= std::min(kPeriodMax, count() - 2); ++period) {
    const int end = AlikeEnd(graph, makers, positions_, cut_bytes_, period);
    if (end <= alike_end_) continue;
    period_ = period;
    alike_end_ = end;
  }
  cut_bytes_.pop_back();
  if (period_ > 0 && HasTied(graph, Ops(1, alike_end_))) period_ = alike_end_ = 0;
  tied_bytes_ = coordinator::TiedBytes(graph, Ops(0, 1), Ops(count() - 1, count()));
}

NodeCosts::NodeCosts(const Units& units, const NodeProfile& node, model::Precision of_cards) {
  const model::Precision precision = PrecisionOf(node, of_cards);
  const double flops_per_second = FlopsPerSecond(node, of_cards);
  const std::vector<int> again = model::RecomputedOps(units.graph(), units.Ops(0, units.count()));
  UnitSeconds sum;
  sums_.push_back(sum);
  for (int unit = 0; unit < units.count(); ++unit) {
    const model::OpRange ops = units.Ops(unit, unit + 1);
    for (int op = ops.begin; op < ops.end; ++op) {
      const model::Cost cost = model::OpCost(units.graph(), op, units.micro_batch(), precision);
      const double memory_seconds = cost.bytes_moved / node.bytes_per_second;
      const double forward =
          std::max(cost.forward_flops / flops_per_second, kForwardShareOfBytes * memory_seconds);
      sum.forward += forward;
      if (std::binary_search(again.begin(), again.end(), op)) sum.again += forward;
      sum.backward += std::max(cost.backward_flops / flops_per_second,
                               (1 - kForwardShareOfBytes) * memory_seconds);
    }
    sums_.push_back(sum);
  }
}

UnitSeconds NodeCosts::Seconds(int begin, int end) const {
  return {sums_[end].forward - sums_[begin].forward, sums_[end].backward - sums_[begin].backward,
          sums_[end].again - sums_[begin].again};
}

double OptimizerSeconds(const model::StageMemory& memory, const NodeProfile& node) {
  const double bytes = kOptimizerPasses * static_cast<double>(memory.weights) +
                       static_cast<double>(memory.working_weights);
  return bytes / node.bytes_per_second;
}

std::pair<int, int> MemoryModel::Representative(int begin, int end) const {
  if (begin < 1 || end > units_.alike_end()) return {begin, end};
  const int first = 1 + (begin - 1) % units_.period();
  return {first, first + end - begin};
}

model::StageMemory MemoryModel::Of(int begin, int end, int slots, bool recompute,
                                   model::Precision precision) {
  auto [entry, added] = one_slot_.try_emplace({Representative(begin, end), recompute, precision});
  if (added) {
    entry->second = model::MemoryOf(units_.graph(), units_.Ops(begin, end), units_.micro_batch(), 1,
                                    recompute, precision);
  }
  model::StageMemory memory = entry->second;
  int64_t activations = 0;
  const bool overflows = __builtin_mul_overflow(memory.activations, slots, &activations);
  memory.activations = overflows ? model::kBytesMax : std::min(activations, model::kBytesMax);
  return memory;
}

}  // namespace longhaul::coordinator
