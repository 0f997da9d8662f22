#include "coordinator/plan/cost_model.h"

#include <algorithm>

#include "model/limits.h"

namespace longhaul::coordinator {
namespace {

// Backward reads the operator's inputs and the output's gradient and writes the inputs' gradients:
// twice what forward moves.
constexpr double kForwardShareOfBytes = 1.0 / 3;

// Passes over the weights: read weight, gradient and both moments, write weight and moments, and
// clear the gradient.
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
  if (left.kind != right.kind || left.heads != right.heads ||
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

// `positions`: of the units' first operators, and the end.
bool AreAlike(const model::Graph& graph, const std::vector<int>& positions) {
  const std::vector<int> makers = MakersOf(graph);
  const int units = static_cast<int>(positions.size()) - 1;
  for (int unit = 2; unit + 1 < units; ++unit) {
    const int begin = positions[unit], before = positions[unit - 1];
    if (positions[unit + 1] - begin != begin - before) return false;
    for (int op = begin; op < positions[unit + 1]; ++op) {
      if (!OpsAlike(graph, makers, op - (begin - before), op)) return false;
    }
  }
  if (units < 3) return true;
  const std::vector<int> inner = graph.ParametersOf({positions[1], positions[units - 1]});
  for (const int tied : graph.TiedParameters()) {
    if (std::binary_search(inner.begin(), inner.end(), tied)) return false;
  }
  return true;
}

}  // namespace

Units::Units(const model::Graph& graph, int64_t micro_batch)
    : graph_(graph), micro_batch_(micro_batch) {
  positions_.push_back(0);
  cut_bytes_.push_back(0);
  for (const int position : graph.CutPoints()) {
    positions_.push_back(position);
    cut_bytes_.push_back(static_cast<double>(model::BoundaryBytes(graph, position, micro_batch)));
  }
  positions_.push_back(static_cast<int>(graph.ops.size()));

  cut_bytes_max_ = *std::max_element(cut_bytes_.begin(), cut_bytes_.end());
  alike_ = AreAlike(graph, positions_);
  const std::vector<int> first = graph.ParametersOf(Ops(0, 1));
  const std::vector<int> last = graph.ParametersOf(Ops(count() - 1, count()));
  for (const int tied : graph.TiedParameters()) {
    if (std::binary_search(first.begin(), first.end(), tied) &&
        std::binary_search(last.begin(), last.end(), tied)) {
      tied_bytes_ += sizeof(float) * static_cast<double>(graph.parameters[tied].elements());
    }
  }
}

NodeCosts::NodeCosts(const Units& units, const NodeProfile& node) {
  UnitSeconds sum;
  sums_.push_back(sum);
  for (int unit = 0; unit < units.count(); ++unit) {
    const model::OpRange ops = units.Ops(unit, unit + 1);
    for (int op = ops.begin; op < ops.end; ++op) {
      const model::Cost cost = model::OpCost(units.graph(), op, units.micro_batch());
      const double memory_seconds = cost.bytes_moved / node.bytes_per_second;
      sum.forward += std::max(cost.forward_flops / node.flops_per_second,
                              kForwardShareOfBytes * memory_seconds);
      sum.backward += std::max(cost.backward_flops / node.flops_per_second,
                               (1 - kForwardShareOfBytes) * memory_seconds);
    }
    sums_.push_back(sum);
  }
}

UnitSeconds NodeCosts::Seconds(int begin, int end) const {
  return {sums_[end].forward - sums_[begin].forward, sums_[end].backward - sums_[begin].backward};
}

double OptimizerSeconds(double weight_bytes, const NodeProfile& node) {
  return kOptimizerPasses * weight_bytes / node.bytes_per_second;
}

std::pair<int, int> MemoryModel::Representative(int begin, int end) const {
  const bool inner = begin > 0 && end < units_.count();
  if (inner && units_.alike()) return {1, 1 + end - begin};
  return {begin, end};
}

model::StageMemory MemoryModel::Of(int begin, int end, int slots) {
  auto [entry, added] = one_slot_.try_emplace(Representative(begin, end));
  if (added) {
    entry->second =
        model::MemoryOf(units_.graph(), units_.Ops(begin, end), units_.micro_batch(), 1);
  }
  model::StageMemory memory = entry->second;
  int64_t activations = 0;
  const bool overflows = __builtin_mul_overflow(memory.activations, slots, &activations);
  memory.activations = overflows ? model::kBytesMax : std::min(activations, model::kBytesMax);
  return memory;
}

}  // namespace longhaul::coordinator
