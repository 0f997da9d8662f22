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

  const std::vector<int> first = graph.ParametersOf(Ops(0, 1));
  const std::vector<int> last = graph.ParametersOf(Ops(count() - 1, count()));
  for (const int tied : graph.TiedParameters()) {
    if (std::binary_search(first.begin(), first.end(), tied) &&
        std::binary_search(last.begin(), last.end(), tied)) {
      tied_bytes_ += sizeof(float) * static_cast<double>(graph.parameters[tied].elements());
    }
  }
}

double Units::CutBytesMax() const {
  return *std::max_element(cut_bytes_.begin(), cut_bytes_.end());
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

model::StageMemory MemoryModel::Of(int begin, int end, int slots) {
  auto [entry, added] = one_slot_.try_emplace(std::make_pair(begin, end));
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
