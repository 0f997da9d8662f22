#include "model/buffer_plan.h"

#include <algorithm>

#include "base/check.h"
#include "model/limits.h"
#include "model/liveness.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

constexpr int64_t kAbsent = BufferPlan::kAbsent;

// Builds a plan in two passes: walks forward and backward execution and notes when each scratch
// tensor is needed, then packs them and replaces tensor numbers by offsets. Forward of the i-th
// operator of n happens at time i, its backward at 2n - 1 - i.
class Planner {
 public:
  Planner(const Graph& graph, OpRange range, int64_t micro_batch)
      : graph_(graph),
        range_(range),
        micro_batch_(micro_batch),
        rows_(micro_batch * graph.context),
        end_time_(2 * (range.end - range.begin) - 1) {
    plan_.slot_edge.assign(graph.edges.size(), kAbsent);
    plan_.scratch_edge.assign(graph.edges.size(), kAbsent);
    plan_.gradient_edge.assign(graph.edges.size(), kAbsent);
    plan_.slot_statistics.assign(graph.ops.size(), kAbsent);
    plan_.forward_workspace.assign(graph.ops.size(), kAbsent);
    plan_.backward_workspace.assign(graph.ops.size(), kAbsent);
    plan_.contributions.resize(graph.ops.size());
  }

  BufferPlan Plan() {
    PlanSlot();
    PlanForward();
    PlanBackward();
    ReplaceNumbersByOffsets();
    return std::move(plan_);
  }

 private:
  const Op& op(int position) const { return graph_.ops[position]; }
  int64_t EdgeElements(int edge) const { return rows_ * graph_.edges[edge].width; }
  int ForwardTime(int position) const { return position - range_.begin; }
  int BackwardTime(int position) const { return end_time_ - ForwardTime(position); }

  int64_t NewScratch(int64_t elements, int time) {
    scratch_.push_back({elements, time, time});
    return static_cast<int64_t>(scratch_.size()) - 1;
  }
  void Touch(int64_t number, int time) {
    if (number == kAbsent) return;
    scratch_[number].last = std::max(scratch_[number].last, time);
  }

  void Save(int edge) {
    if (plan_.slot_edge[edge] != kAbsent) return;
    plan_.slot_edge[edge] = plan_.slot_elements;
    plan_.slot_elements += Padded(EdgeElements(edge));
  }

  void PlanSlot() {
    if (HasEmbedding(range_)) {
      plan_.slot_integers += Padded(rows_);
    } else {
      Save(graph_.CutEdge(range_.begin));
    }
    for (int position = range_.begin; position < range_.end; ++position) {
      if (InfoOf(op(position).kind).backward_reads_input) {
        for (int edge : op(position).inputs) Save(edge);
      }
      if (InfoOf(op(position).kind).backward_reads_output) Save(op(position).output);
      if (int64_t elements = StatisticsElements(graph_, op(position), micro_batch_)) {
        plan_.slot_statistics[position] = plan_.slot_elements;
        plan_.slot_elements += Padded(elements);
      }
    }
    if (HasLoss(graph_, range_)) {
      plan_.slot_integers += Padded(rows_);
    } else {
      Save(graph_.CutEdge(range_.end));
    }
  }

  void PlanForward() {
    for (int position = range_.begin; position < range_.end; ++position) {
      const int time = ForwardTime(position);
      for (int edge : op(position).inputs) Touch(plan_.scratch_edge[edge], time);
      const int output = op(position).output;
      if (output >= 0 && plan_.slot_edge[output] == kAbsent) {
        plan_.scratch_edge[output] = NewScratch(EdgeElements(output), time);
      }
      if (int64_t elements = WorkspaceElements(graph_, op(position), micro_batch_)) {
        plan_.forward_workspace[position] = NewScratch(elements, time);
      }
    }
  }

  void PlanBackward() {
    if (!HasLoss(graph_, range_)) {
      // Needed from the beginning, so that a forward between its arrival and backward is harmless.
      const int edge = graph_.CutEdge(range_.end);
      plan_.gradient_edge[edge] = NewScratch(EdgeElements(edge), 0);
    }
    for (int position = range_.end - 1; position >= range_.begin; --position) {
      const int time = BackwardTime(position);
      if (op(position).output >= 0) Touch(plan_.gradient_edge[op(position).output], time);
      if (int64_t elements = WorkspaceElements(graph_, op(position), micro_batch_)) {
        plan_.backward_workspace[position] = NewScratch(elements, time);
      }
      if (op(position).kind == OpKind::kSoftmaxCrossEntropy) continue;
      for (int edge : op(position).inputs) Contribute(position, edge);
    }
    if (!HasEmbedding(range_)) {
      Touch(plan_.gradient_edge[graph_.CutEdge(range_.begin)], end_time_);
    }
  }

  void Contribute(int position, int edge) {
    const int time = BackwardTime(position);
    const bool passes_on = InfoOf(op(position).kind).passes_gradient_on;
    GradientContribution contribution;
    contribution.source =
        passes_on ? plan_.gradient_edge[op(position).output] : NewScratch(EdgeElements(edge), time);
    contribution.previous = plan_.gradient_edge[edge];
    contribution.result = contribution.source;
    if (contribution.previous != kAbsent) {
      Touch(contribution.previous, time);
      // What kAdd passes on may also be another edge's gradient, so a sum needs a place of its own.
      if (passes_on) contribution.result = NewScratch(EdgeElements(edge), time);
    }
    plan_.gradient_edge[edge] = contribution.result;
    plan_.contributions[position].push_back(contribution);
  }

  void ReplaceNumbersByOffsets() {
    const Packing packing = PackByLiveness(scratch_);
    plan_.scratch_elements = packing.elements;
    const auto replace = [&](int64_t& number) {
      if (number != kAbsent) number = packing.offsets[number];
    };
    for (auto* numbers : {&plan_.scratch_edge, &plan_.gradient_edge, &plan_.forward_workspace,
                          &plan_.backward_workspace}) {
      for (int64_t& number : *numbers) replace(number);
    }
    for (auto& of_op : plan_.contributions) {
      for (GradientContribution& contribution : of_op) {
        replace(contribution.source);
        replace(contribution.previous);
        replace(contribution.result);
      }
    }
  }

  const Graph& graph_;
  const OpRange range_;
  const int64_t micro_batch_, rows_;
  const int end_time_;
  BufferPlan plan_;
  std::vector<LiveTensor> scratch_;  // by tensor number
};

}  // namespace

bool HasEmbedding(OpRange range) { return range.begin == 0; }

bool HasLoss(const Graph& graph, OpRange range) {
  return range.end == static_cast<int>(graph.ops.size());
}

int64_t StatisticsElements(const Graph& graph, const Op& op, int64_t micro_batch) {
  const auto statistics = InfoOf(op.kind).statistics;
  return statistics == nullptr ? 0 : statistics(graph, op, micro_batch);
}

int64_t WorkspaceElements(const Graph& graph, const Op& op, int64_t micro_batch) {
  const auto workspace = InfoOf(op.kind).workspace;
  return workspace == nullptr ? 0 : workspace(graph, op, micro_batch);
}

BufferPlan PlanBuffers(const Graph& graph, OpRange range, int64_t micro_batch) {
  LH_CHECK(range.begin >= 0 && range.begin < range.end &&
               range.end <= static_cast<int>(graph.ops.size()),
           "operators ", range.begin, " to ", range.end);
  LH_CHECK(micro_batch >= 1 && micro_batch <= kRowsMax / graph.context, "micro-batch of ",
           micro_batch, " with context ", graph.context);
  return Planner(graph, range, micro_batch).Plan();
}

}  // namespace longhaul::model
