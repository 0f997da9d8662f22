#include "model/buffer_plan.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model/family.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

Graph Gpt2(int64_t layers) {
  ModelSpec spec;
  spec.layers = layers;
  spec.hidden = 24;
  spec.heads = 3;
  spec.context = 7;
  spec.vocab = 13;
  return *BuildGraph(spec);
}

int EdgeNamed(const Graph& graph, const std::string& name) {
  for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (graph.edges[edge].name == name) return static_cast<int>(edge);
  }
  ADD_FAILURE() << name;
  return -1;
}

std::vector<OpRange> AllRanges(const Graph& graph) {
  std::vector<int> ends = graph.CutPoints();
  ends.insert(ends.begin(), 0);
  ends.push_back(static_cast<int>(graph.ops.size()));
  std::vector<OpRange> ranges;
  for (size_t i = 0; i < ends.size(); ++i) {
    for (size_t j = i + 1; j < ends.size(); ++j) ranges.push_back({ends[i], ends[j]});
  }
  return ranges;
}

TEST(BufferPlanTest, SlotHoldsWhatBackwardReads) {
  const Graph graph = Gpt2(2);
  const int end = static_cast<int>(graph.ops.size());
  const BufferPlan plan = PlanBuffers(graph, {0, end}, 2);
  for (const char* saved :
       {"embedding", "h.0.ln_1", "h.0.attn.qkv", "h.0.attn", "h.0.attn.residual", "h.0.ln_2",
        "h.0.mlp.fc", "h.0.mlp.gelu", "h.0.mlp.residual", "h.1.mlp.residual", "ln_f", "head"}) {
    EXPECT_NE(plan.slot_edge[EdgeNamed(graph, saved)], BufferPlan::kAbsent) << saved;
    EXPECT_EQ(plan.scratch_edge[EdgeNamed(graph, saved)], BufferPlan::kAbsent) << saved;
  }
  for (const char* temporary : {"h.0.attn.proj", "h.0.mlp.proj", "h.1.mlp.proj"}) {
    EXPECT_EQ(plan.slot_edge[EdgeNamed(graph, temporary)], BufferPlan::kAbsent) << temporary;
    EXPECT_NE(plan.scratch_edge[EdgeNamed(graph, temporary)], BufferPlan::kAbsent) << temporary;
  }
  EXPECT_EQ(plan.gradient_edge[EdgeNamed(graph, "head")], BufferPlan::kAbsent);
}

// Elements of a row of an edge: those of the test graphs' logits, of 5 or 13, are padded in bf16.
int64_t RowElements(const Graph& graph, int edge, Precision precision) {
  const bool padded = precision == Precision::kBFloat16 && edge == graph.ops.back().inputs[0];
  return padded ? 64 : graph.edges[edge].width;
}

// `wide`: elements that an fp32 number takes.
void CheckSlot(const Graph& graph, OpRange range, Precision precision, int64_t wide) {
  const int64_t micro_batch = 2, rows = micro_batch * graph.context;
  const BufferPlan plan = PlanBuffers(graph, range, micro_batch, false, precision);
  std::map<int64_t, int64_t> sizes;  // by offset
  size_t tensors = 0;
  for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (plan.slot_edge[edge] == BufferPlan::kAbsent) continue;
    sizes[plan.slot_edge[edge]] =
        Padded(rows * RowElements(graph, static_cast<int>(edge), precision));
    ++tensors;
  }
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (plan.slot_statistics[op] == BufferPlan::kAbsent) continue;
    sizes[plan.slot_statistics[op]] =
        Padded(wide * rows * (graph.ops[op].kind == OpKind::kLayerNorm ? 2 : graph.ops[op].heads));
    ++tensors;
  }
  for (const EdgeCopy& copy : plan.forward_copies) {
    sizes[copy.to] = Padded(rows * graph.edges[copy.edge].width);
    ++tensors;
  }
  EXPECT_EQ(sizes.size(), tensors);
  int64_t next = 0;
  for (const auto& [offset, size] : sizes) {
    EXPECT_EQ(offset, next);
    next += size;
  }
  EXPECT_EQ(plan.slot_elements, next);
  const int integer_tensors =
      (range.begin == 0) + (range.end == static_cast<int>(graph.ops.size()));
  EXPECT_EQ(plan.slot_integers, integer_tensors * Padded(rows));
}

TEST(BufferPlanTest, SlotTensorsDoNotOverlapAndFillTheSlot) {
  const Graph graph = Gpt2(2);
  for (const OpRange range : AllRanges(graph)) {
    CheckSlot(graph, range, Precision::kFloat32, 1);
    CheckSlot(graph, range, Precision::kBFloat16, 2);
  }
}

// Executes a plan on memories of labels: every element remembers which tensor was last written
// there. Whoever reads a tensor must find all of its elements intact.
class LabelMachine {
 public:
  // `wide`: elements that an fp32 number takes in the precision.
  LabelMachine(const Graph& graph, OpRange range, int64_t micro_batch, bool recompute,
               Precision precision, int64_t wide)
      : graph_(graph),
        range_(range),
        micro_batch_(micro_batch),
        rows_(micro_batch * graph.context),
        precision_(precision),
        wide_(wide),
        plan_(PlanBuffers(graph, range, micro_batch, recompute, precision)),
        slot_(plan_.slot_elements),
        scratch_(plan_.scratch_elements) {}

  void Run() {
    ForEachBoundaryEdge(range_.begin, [&](int edge, int64_t offset) {
      Write(slot_, plan_.input + offset, Size(edge), ValueLabel(edge));
    });
    ForEachBoundaryEdge(range_.end, [&](int edge, int64_t offset) {
      WriteGradient(edge, plan_.output_gradient + offset);
    });
    for (int op = range_.begin; op < range_.end; ++op) Forward(op);
    for (const EdgeCopy& copy : plan_.forward_copies) {
      Write(slot_, copy.to, Size(copy.edge), slot_[copy.from]);
    }
    ForEachBoundaryEdge(range_.end, [&](int edge, int64_t offset) {
      Read(slot_, plan_.output + offset, Size(edge), ValueLabel(edge));
    });
    ForgetForward();
    for (const BackwardAction& action : plan_.backward) {
      if (action.again) {
        Again(action.op);
      } else {
        Backward(action.op);
      }
    }
    for (const EdgeCopy& copy : plan_.backward_copies) {
      Read(scratch_, copy.from, Size(copy.edge), gradient_label_[copy.edge]);
      Write(scratch_, copy.to, Size(copy.edge), gradient_label_[copy.edge]);
    }
    ForEachBoundaryEdge(range_.begin, [&](int edge, int64_t offset) {
      ReadGradient(edge, plan_.input_gradient + offset);
    });
  }

 private:
  using Memory = std::vector<std::string>;

  template <typename Visit>
  void ForEachBoundaryEdge(int position, Visit visit) {
    if (position == 0 || position == static_cast<int>(graph_.ops.size())) return;
    int64_t offset = 0;
    for (int edge : graph_.CutEdges(position)) {
      offset = Padded(offset);
      visit(edge, offset);
      offset += Size(edge);
    }
    EXPECT_EQ(offset, BoundaryElements(graph_, position, micro_batch_));
  }

  // Another micro-batch's forward leaves only the slot and the output's gradient alone.
  void ForgetForward() {
    const int64_t begin = plan_.output_gradient;
    const int64_t end =
        begin < 0 ? begin : begin + BoundaryElements(graph_, range_.end, micro_batch_);
    for (int64_t i = 0; i < static_cast<int64_t>(scratch_.size()); ++i) {
      if (i < begin || i >= end) scratch_[i] = "another micro-batch";
    }
  }

  int64_t Size(int edge) const { return rows_ * RowElements(graph_, edge, precision_); }

  void Write(Memory& memory, int64_t offset, int64_t size, const std::string& label) {
    ASSERT_GE(offset, 0) << label;
    ASSERT_LE(offset + size, static_cast<int64_t>(memory.size())) << label;
    EXPECT_EQ(offset % kAlignElements, 0) << label;
    for (int64_t i = offset; i < offset + size; ++i) memory[i] = label;
  }
  void Read(const Memory& memory, int64_t offset, int64_t size, const std::string& label) {
    ASSERT_GE(offset, 0) << label;
    for (int64_t i = offset; i < offset + size; ++i) ASSERT_EQ(memory[i], label);
  }

  std::string ValueLabel(int edge) const { return "value " + graph_.edges[edge].name; }
  std::string StatisticsLabel(int op) const { return "statistics " + graph_.ops[op].name; }

  void WriteGradient(int edge, int64_t offset) {
    gradient_label_[edge] = "gradient " + graph_.edges[edge].name;
    Write(scratch_, offset, Size(edge), gradient_label_[edge]);
  }
  void ReadGradient(int edge, int64_t offset) {
    Read(scratch_, offset, Size(edge), gradient_label_[edge]);
  }

  // `elsewhere`: the place in scratch, by edge or operator, where the slot has none.
  void WriteValue(int edge, const std::vector<int64_t>& elsewhere) {
    if (plan_.slot_edge[edge] >= 0) {
      Write(slot_, plan_.slot_edge[edge], Size(edge), ValueLabel(edge));
    } else {
      Write(scratch_, elsewhere[edge], Size(edge), ValueLabel(edge));
    }
  }
  void ReadValue(int edge, const std::vector<int64_t>& elsewhere) {
    if (plan_.slot_edge[edge] >= 0) {
      Read(slot_, plan_.slot_edge[edge], Size(edge), ValueLabel(edge));
    } else {
      Read(scratch_, elsewhere[edge], Size(edge), ValueLabel(edge));
    }
  }
  void WriteStatistics(int op, const std::vector<int64_t>& elsewhere) {
    const int64_t size = wide_ * StatisticsElements(graph_, graph_.ops[op], micro_batch_);
    if (size == 0) return;
    const int64_t kept = plan_.slot_statistics[op];
    Write(kept >= 0 ? slot_ : scratch_, kept >= 0 ? kept : elsewhere[op], size,
          StatisticsLabel(op));
  }
  void ReadStatistics(int op) {
    const int64_t size = wide_ * StatisticsElements(graph_, graph_.ops[op], micro_batch_);
    if (size == 0) return;
    const int64_t kept = plan_.slot_statistics[op];
    Read(kept >= 0 ? slot_ : scratch_, kept >= 0 ? kept : plan_.again_statistics[op], size,
         StatisticsLabel(op));
  }

  void Work(int64_t offset, int position) {
    if (offset < 0) return;
    Write(scratch_, offset, wide_ * WorkspaceElements(graph_, graph_.ops[position], micro_batch_),
          "work");
  }

  void Forward(int position) {
    const Op& op = graph_.ops[position];
    Work(plan_.forward_workspace[position], position);
    if (op.output >= 0) WriteValue(op.output, plan_.scratch_edge);
    WriteStatistics(position, plan_.scratch_statistics);
    for (int edge : op.inputs) ReadValue(edge, plan_.scratch_edge);
  }

  void Again(int position) {
    const Op& op = graph_.ops[position];
    Work(plan_.again_workspace[position], position);
    WriteValue(op.output, plan_.again_edge);
    WriteStatistics(position, plan_.again_statistics);
    for (int edge : op.inputs) ReadValue(edge, plan_.again_edge);
  }

  // Writes the results first and reads the operands last, so that an operand which shares memory
  // with a result is caught.
  void Backward(int position) {
    const Op& op = graph_.ops[position];
    const OpKindInfo& info = InfoOf(op.kind);
    Work(plan_.backward_workspace[position], position);
    const bool loss = op.kind == OpKind::kSoftmaxCrossEntropy;
    const bool from_logits = op.output >= 0 && plan_.gradient_edge[op.output] < 0;
    if (!info.passes_gradient_on && !loss) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        Write(scratch_, plan_.contributions[position][i].source, Size(op.inputs[i]),
              Contribution(position, i));
      }
    }
    if (info.backward_reads_input) {
      for (int edge : op.inputs) ReadValue(edge, plan_.again_edge);
    }
    if (info.backward_reads_output) ReadValue(op.output, plan_.again_edge);
    ReadStatistics(position);
    if (!loss && !from_logits) ReadGradient(op.output, plan_.gradient_edge[op.output]);
    if (loss) {
      EXPECT_TRUE(plan_.contributions[position].empty());
      return;
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) Accumulate(position, i);
  }

  std::string Contribution(int position, size_t input) const {
    return "contribution " + graph_.ops[position].name + " " + std::to_string(input);
  }

  void Accumulate(int position, size_t input) {
    const Op& op = graph_.ops[position];
    const int edge = op.inputs[input];
    const GradientContribution& part = plan_.contributions[position][input];
    const std::string source = InfoOf(op.kind).passes_gradient_on ? gradient_label_[op.output]
                                                                  : Contribution(position, input);
    Read(scratch_, part.source, Size(edge), source);
    if (part.previous < 0) {
      EXPECT_EQ(gradient_label_.count(edge), 0);
      EXPECT_EQ(part.result, part.source);
      gradient_label_[edge] = source;
      return;
    }
    ReadGradient(edge, part.previous);
    gradient_label_[edge] += " + " + source;
    Write(scratch_, part.result, Size(edge), gradient_label_[edge]);
  }

  const Graph& graph_;
  const OpRange range_;
  const int64_t micro_batch_, rows_;
  const Precision precision_;
  const int64_t wide_;
  const BufferPlan plan_;
  Memory slot_, scratch_;
  std::map<int, std::string> gradient_label_;  // by edge: what its gradient so far is called
};

TEST(BufferPlanTest, NoTensorIsOverwrittenWhileItIsNeeded) {
  const Graph graph = Gpt2(2);
  for (const OpRange range : AllRanges(graph)) {
    for (const bool recompute : {false, true}) {
      LabelMachine(graph, range, 1, recompute, Precision::kFloat32, 1).Run();
      LabelMachine(graph, range, 1, recompute, Precision::kBFloat16, 2).Run();
      if (HasFatalFailure()) FAIL() << range.begin << " to " << range.end << " " << recompute;
    }
  }
}

// Edges that several kAdd read, also twice in one operator: each sum needs a place of its own.
TEST(BufferPlanTest, SharedGradientsStayIntact) {
  Graph graph;
  graph.family = "test";
  graph.vocab = 5;
  graph.context = 3;
  graph.layers = 1;
  graph.parameters = {{"table", {5, 8}, {}, true}, {"positions", {3, 8}, {}, true}};
  graph.edges = {{"x", 8}, {"twice", 8}, {"bent", 8}, {"sum", 8}, {"more", 8}, {"logits", 5}};
  graph.ops = {{OpKind::kEmbedding, "embedding", 0, {}, 0, {0, 1}, 0, 0},
               {OpKind::kAdd, "twice", 0, {0, 0}, 1, {}, 0, 0},
               {OpKind::kGelu, "bent", 0, {0}, 2, {}, 0, 0},
               {OpKind::kAdd, "sum", 0, {1, 2}, 3, {}, 0, 0},
               {OpKind::kAdd, "more", 0, {3, 0}, 4, {}, 0, 0},
               {OpKind::kLinear, "head", 0, {4}, 5, {0}, 0, 0},
               {OpKind::kSoftmaxCrossEntropy, "loss", 0, {5}, -1, {}, 0, 0}};
  ASSERT_TRUE(graph.Validate().ok()) << graph.Validate();
  for (const OpRange range : AllRanges(graph)) {
    for (const bool recompute : {false, true}) {
      LabelMachine(graph, range, 2, recompute, Precision::kFloat32, 1).Run();
      LabelMachine(graph, range, 2, recompute, Precision::kBFloat16, 2).Run();
    }
  }
}

TEST(BufferPlanTest, ScratchDoesNotGrowWithDepth) {
  const Graph two = Gpt2(2), eight = Gpt2(8);
  const auto scratch = [](const Graph& graph) {
    return PlanBuffers(graph, {0, static_cast<int>(graph.ops.size())}, 2).scratch_elements;
  };
  EXPECT_EQ(scratch(two), scratch(eight));
}

TEST(BufferPlanTest, RowsOfLogitsInBfloat16BeginAt16Bytes) {
  EXPECT_EQ(LogitsPitch(50257, Precision::kBFloat16), 50304);
  EXPECT_EQ(LogitsPitch(50265, Precision::kBFloat16), 50304);
  EXPECT_EQ(LogitsPitch(1, Precision::kBFloat16), 64);
  for (const int64_t aligned : {8, 32000, 50264, 50304}) {
    EXPECT_EQ(LogitsPitch(aligned, Precision::kBFloat16), aligned);
  }
  EXPECT_EQ(LogitsPitch(50257, Precision::kFloat32), 50257);
}

TEST(BufferPlanTest, RecomputationKeepsBlockBoundariesAndTheHead) {
  const Graph graph = Gpt2(3);
  const int end = static_cast<int>(graph.ops.size());
  const BufferPlan plan = PlanBuffers(graph, {0, end}, 2, /*recompute=*/true);
  for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
    const std::string& name = graph.edges[edge].name;
    const bool kept = name.ends_with("mlp.residual") || name == "ln_f" || name == "head";
    EXPECT_EQ(plan.slot_edge[edge] != BufferPlan::kAbsent, kept) << name;
  }
  // The last product of a block feeds a sum only, whose backward reads nothing.
  for (const int op : RecomputedOps(graph, {0, end})) {
    EXPECT_FALSE(graph.ops[op].name.ends_with("mlp.proj")) << graph.ops[op].name;
    EXPECT_LT(graph.ops[op].layer, graph.layers);
  }
}

}  // namespace
}  // namespace longhaul::model
