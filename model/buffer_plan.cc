#include "model/buffer_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/blocks.h"
#include "model/limits.h"
#include "model/liveness.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

constexpr int64_t kAbsent = BufferPlan::kAbsent;

// Tensors of scratch by number, each needed for a span of time; packed at the end.
class Scratch {
 public:
  int64_t New(int64_t elements, int time) {
    tensors_.push_back({elements, time, time});
    return Number({tensors_.size() - 1, 0});
  }
  // A number for what lies `offset` elements into tensor `number`.
  int64_t Part(int64_t number, int64_t offset) {
    return Number({places_[number].tensor, places_[number].offset + offset});
  }
  void Touch(int64_t number, int time) {
    if (number == kAbsent) return;
    LiveTensor& tensor = tensors_[places_[number].tensor];
    tensor.last = std::max(tensor.last, time);
  }
  // From then on numbers have offsets.
  int64_t Pack() {
    packing_ = PackByLiveness(tensors_);
    return packing_.elements;
  }
  void Replace(int64_t& number) const {
    if (number == kAbsent) return;
    number = packing_.offsets[places_[number].tensor] + places_[number].offset;
  }

 private:
  struct Place {
    size_t tensor;
    int64_t offset;
  };
  int64_t Number(Place place) {
    places_.push_back(place);
    return static_cast<int64_t>(places_.size()) - 1;
  }
  std::vector<LiveTensor> tensors_;
  std::vector<Place> places_;  // by number
  Packing packing_;
};

// Builds a plan in two passes: walks forward and backward execution and notes when each scratch
// tensor is needed, then packs them and replaces tensor numbers by offsets. Time counts the
// operators of forward, then the actions of backward.
class Planner {
 public:
  Planner(const Graph& graph, OpRange range, int64_t micro_batch, bool recompute,
          Precision precision)
      : graph_(graph),
        range_(range),
        micro_batch_(micro_batch),
        rows_(micro_batch * graph.context),
        recompute_(recompute),
        precision_(precision),
        wide_(WideElements(precision)) {
    for (auto* by_edge :
         {&plan_.slot_edge, &plan_.scratch_edge, &plan_.again_edge, &plan_.gradient_edge}) {
      by_edge->assign(graph.edges.size(), kAbsent);
    }
    for (auto* by_op : {&plan_.slot_statistics, &plan_.scratch_statistics, &plan_.again_statistics,
                        &plan_.forward_workspace, &plan_.again_workspace, &plan_.backward_workspace,
                        &plan_.constants}) {
      by_op->assign(graph.ops.size(), kAbsent);
    }
    plan_.contributions.resize(graph.ops.size());
    if (!HasEmbedding(range)) input_edges_ = graph.CutEdges(range.begin);
    if (!HasLoss(graph, range)) output_edges_ = graph.CutEdges(range.end);
  }

  BufferPlan Plan() {
    ListActions();
    PlanBoundaries();
    PlanSlot();
    PlanConstants();
    PlanForward();
    PlanBackward();
    PlanInputGradient();
    ReplaceNumbersByOffsets();
    return std::move(plan_);
  }

 private:
  const Op& op(int position) const { return graph_.ops[position]; }
  int64_t Elements(int edge) const { return EdgeElements(graph_, edge, micro_batch_, precision_); }
  int64_t Statistics(int position) const {
    return wide_ * StatisticsElements(graph_, op(position), micro_batch_);
  }
  int64_t Workspace(int position) const {
    return wide_ * WorkspaceElements(graph_, op(position), micro_batch_);
  }
  int ForwardTime(int position) const { return position - range_.begin; }
  int ActionTime(size_t action) const {
    return range_.end - range_.begin + static_cast<int>(action);
  }
  bool InRecomputedBlock(int position) const {
    return recompute_ && IsRecomputed(graph_, {position, position + 1});
  }

  void ListActions() {
    std::vector<int> again;
    if (recompute_) again = RecomputedOps(graph_, range_);
    std::vector<OpRange> blocks = BlocksOf(graph_, range_);
    for (size_t i = blocks.size(); i-- > 0;) {
      const auto first = std::lower_bound(again.begin(), again.end(), blocks[i].begin);
      const auto last = std::lower_bound(again.begin(), again.end(), blocks[i].end);
      for (auto position = first; position != last; ++position) {
        plan_.backward.push_back({*position, true});
      }
      for (int position = blocks[i].end - 1; position >= blocks[i].begin; --position) {
        plan_.backward.push_back({position, false});
      }
    }
  }

  // Gives the edges of a cut their places from `offset` on: place(edge, offset). Returns the end.
  template <typename Place>
  int64_t LayOut(const std::vector<int>& edges, int64_t offset, Place place) const {
    for (int edge : edges) {
      place(edge, offset);
      offset += Padded(Elements(edge));
    }
    return offset;
  }

  void PlanBoundaries() {
    if (HasEmbedding(range_)) plan_.slot_integers += Padded(rows_);
    if (HasLoss(graph_, range_)) plan_.slot_integers += Padded(rows_);
    if (!input_edges_.empty()) {
      plan_.input = plan_.slot_elements;
      plan_.slot_elements = LayOut(input_edges_, plan_.input, [&](int edge, int64_t offset) {
        plan_.slot_edge[edge] = offset;
      });
    }
    if (output_edges_.empty()) return;
    plan_.output = plan_.slot_elements;
    plan_.slot_elements = LayOut(output_edges_, plan_.output, [&](int edge, int64_t offset) {
      if (plan_.slot_edge[edge] == kAbsent) {
        plan_.slot_edge[edge] = offset;
      } else {
        plan_.forward_copies.push_back({edge, plan_.slot_edge[edge], offset});
      }
    });
    // Needed from the beginning, so that a forward between its arrival and backward is harmless.
    plan_.output_gradient = scratch_.New(plan_.slot_elements - plan_.output, 0);
    LayOut(output_edges_, 0, [&](int edge, int64_t offset) {
      plan_.gradient_edge[edge] = scratch_.Part(plan_.output_gradient, offset);
    });
  }

  void Save(int edge) {
    if (plan_.slot_edge[edge] != kAbsent) return;
    plan_.slot_edge[edge] = plan_.slot_elements;
    plan_.slot_elements += Padded(Elements(edge));
  }

  void PlanSlot() {
    std::vector<bool> crosses(graph_.edges.size(), false);
    if (recompute_) crosses = CrossesBlocks(graph_, range_);
    for (int position = range_.begin; position < range_.end; ++position) {
      const OpKindInfo& info = InfoOf(op(position).kind);
      const bool keeps = !InRecomputedBlock(position);
      for (int edge : op(position).inputs) {
        if ((keeps && info.backward_reads_input) || crosses[edge]) Save(edge);
      }
      if (keeps && info.backward_reads_output) Save(op(position).output);
      const int64_t elements = Statistics(position);
      if (!keeps || elements == 0) continue;
      plan_.slot_statistics[position] = plan_.slot_elements;
      plan_.slot_elements += Padded(elements);
    }
  }

  void PlanConstants() {
    for (int position = range_.begin; position < range_.end; ++position) {
      const int64_t elements = ConstantElements(graph_, op(position));
      if (elements == 0) continue;
      int same = range_.begin;
      while (same < position && !(plan_.constants[same] != kAbsent && SameTable(same, position))) {
        ++same;
      }
      if (same < position) {
        plan_.constants[position] = plan_.constants[same];
        continue;
      }
      plan_.constants[position] = plan_.constant_elements;
      plan_.constant_elements += Padded(elements);
    }
  }

  bool SameTable(int a, int b) const {
    return op(a).kind == op(b).kind && op(a).rotary == op(b).rotary &&
           HeadWidth(graph_, op(a)) == HeadWidth(graph_, op(b));
  }

  void PlanForward() {
    for (int position = range_.begin; position < range_.end; ++position) {
      const int time = ForwardTime(position);
      for (int edge : op(position).inputs) scratch_.Touch(plan_.scratch_edge[edge], time);
      const int output = op(position).output;
      if (output >= 0 && plan_.slot_edge[output] == kAbsent) {
        plan_.scratch_edge[output] = scratch_.New(Elements(output), time);
      }
      const int64_t statistics = Statistics(position);
      if (statistics > 0 && plan_.slot_statistics[position] == kAbsent) {
        plan_.scratch_statistics[position] = scratch_.New(statistics, time);
      }
      if (int64_t elements = Workspace(position)) {
        plan_.forward_workspace[position] = scratch_.New(elements, time);
      }
    }
  }

  void PlanBackward() {
    for (size_t i = 0; i < plan_.backward.size(); ++i) {
      if (plan_.backward[i].again) {
        PlanAgain(plan_.backward[i].op, ActionTime(i));
      } else {
        PlanBackwardOf(plan_.backward[i].op, ActionTime(i));
      }
    }
  }

  void PlanAgain(int position, int time) {
    for (int edge : op(position).inputs) scratch_.Touch(plan_.again_edge[edge], time);
    const int output = op(position).output;
    if (plan_.slot_edge[output] == kAbsent) {
      plan_.again_edge[output] = scratch_.New(Elements(output), time);
    }
    if (int64_t elements = Statistics(position)) {
      plan_.again_statistics[position] = scratch_.New(elements, time);
    }
    if (int64_t elements = Workspace(position)) {
      plan_.again_workspace[position] = scratch_.New(elements, time);
    }
  }

  void PlanBackwardOf(int position, int time) {
    const OpKindInfo& info = InfoOf(op(position).kind);
    const int output = op(position).output;
    if (output >= 0) scratch_.Touch(plan_.gradient_edge[output], time);
    if (info.backward_reads_output) scratch_.Touch(plan_.again_edge[output], time);
    if (info.backward_reads_input) {
      for (int edge : op(position).inputs) scratch_.Touch(plan_.again_edge[edge], time);
    }
    scratch_.Touch(plan_.again_statistics[position], time);
    if (int64_t elements = Workspace(position)) {
      plan_.backward_workspace[position] = scratch_.New(elements, time);
    }
    if (op(position).kind == OpKind::kSoftmaxCrossEntropy) return;
    for (int edge : op(position).inputs) Contribute(position, edge, time);
  }

  void Contribute(int position, int edge, int time) {
    const bool passes_on = InfoOf(op(position).kind).passes_gradient_on;
    GradientContribution contribution;
    contribution.source =
        passes_on ? plan_.gradient_edge[op(position).output] : scratch_.New(Elements(edge), time);
    contribution.previous = plan_.gradient_edge[edge];
    contribution.result = contribution.source;
    if (contribution.previous != kAbsent) {
      scratch_.Touch(contribution.previous, time);
      // What is passed on may also be another edge's gradient, so a sum needs a place of its own.
      if (passes_on) contribution.result = scratch_.New(Elements(edge), time);
    }
    plan_.gradient_edge[edge] = contribution.result;
    plan_.contributions[position].push_back(contribution);
  }

  // One edge's gradient is sent from where it is; several are first put side by side.
  void PlanInputGradient() {
    if (input_edges_.empty()) return;
    const int time = ActionTime(plan_.backward.size());
    for (int edge : input_edges_) scratch_.Touch(plan_.gradient_edge[edge], time);
    if (input_edges_.size() == 1) {
      plan_.input_gradient = plan_.gradient_edge[input_edges_[0]];
      return;
    }
    const int64_t elements = LayOut(input_edges_, 0, [](int, int64_t) {});
    plan_.input_gradient = scratch_.New(elements, time);
    LayOut(input_edges_, 0, [&](int edge, int64_t offset) {
      plan_.backward_copies.push_back(
          {edge, plan_.gradient_edge[edge], scratch_.Part(plan_.input_gradient, offset)});
    });
  }

  void ReplaceNumbersByOffsets() {
    plan_.scratch_elements = scratch_.Pack();
    for (auto* numbers :
         {&plan_.scratch_edge, &plan_.again_edge, &plan_.gradient_edge, &plan_.scratch_statistics,
          &plan_.again_statistics, &plan_.forward_workspace, &plan_.again_workspace,
          &plan_.backward_workspace}) {
      for (int64_t& number : *numbers) scratch_.Replace(number);
    }
    for (auto& of_op : plan_.contributions) {
      for (GradientContribution& contribution : of_op) {
        scratch_.Replace(contribution.source);
        scratch_.Replace(contribution.previous);
        scratch_.Replace(contribution.result);
      }
    }
    scratch_.Replace(plan_.input_gradient);
    scratch_.Replace(plan_.output_gradient);
    for (EdgeCopy& copy : plan_.backward_copies) {
      scratch_.Replace(copy.from);
      scratch_.Replace(copy.to);
    }
  }

  const Graph& graph_;
  const OpRange range_;
  const int64_t micro_batch_, rows_;
  const bool recompute_;
  const Precision precision_;
  const int64_t wide_;
  std::vector<int> input_edges_, output_edges_;
  BufferPlan plan_;
  Scratch scratch_;
};

int64_t OrZero(int64_t (*size)(const Graph&, const Op&, int64_t), const Graph& graph, const Op& op,
               int64_t micro_batch) {
  return size == nullptr ? 0 : size(graph, op, micro_batch);
}

}  // namespace

int64_t LogitsPitch(int64_t vocab, Precision precision) {
  constexpr int64_t kAlign = 8, kRound = 64;
  if (precision == Precision::kFloat32 || vocab % kAlign == 0) return vocab;
  return (vocab + kRound - 1) / kRound * kRound;
}

int64_t EdgeElements(const Graph& graph, int edge, int64_t micro_batch, Precision precision) {
  const int64_t width = graph.edges[edge].width;
  const bool is_logits = edge == graph.ops.back().inputs[0];
  return micro_batch * graph.context * (is_logits ? LogitsPitch(width, precision) : width);
}

bool HasEmbedding(OpRange range) { return range.begin == 0; }

bool HasLoss(const Graph& graph, OpRange range) {
  return range.end == static_cast<int>(graph.ops.size());
}

int64_t StatisticsElements(const Graph& graph, const Op& op, int64_t micro_batch) {
  return OrZero(InfoOf(op.kind).statistics, graph, op, micro_batch);
}

int64_t WorkspaceElements(const Graph& graph, const Op& op, int64_t micro_batch) {
  return OrZero(InfoOf(op.kind).workspace, graph, op, micro_batch);
}

int64_t ConstantElements(const Graph& graph, const Op& op) {
  const auto constants = InfoOf(op.kind).constants;
  return constants == nullptr ? 0 : constants(graph, op);
}

int64_t BoundaryElements(const Graph& graph, int position, int64_t micro_batch) {
  int64_t elements = 0;
  for (int edge : graph.CutEdges(position)) {
    elements = Padded(elements) + micro_batch * graph.context * graph.edges[edge].width;
  }
  return elements;
}

BufferPlan PlanBuffers(const Graph& graph, OpRange range, int64_t micro_batch, bool recompute,
                       Precision precision) {
  LH_CHECK(range.begin >= 0 && range.begin < range.end &&
               range.end <= static_cast<int>(graph.ops.size()),
           "operators ", range.begin, " to ", range.end);
  LH_CHECK(micro_batch >= 1 && micro_batch <= kRowsMax / graph.context, "micro-batch of ",
           micro_batch, " with context ", graph.context);
  return Planner(graph, range, micro_batch, recompute, precision).Plan();
}

}  // namespace longhaul::model
