#include "model/buffer_plan.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model/family.h"

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

TEST(BufferPlanTest, SlotTensorsDoNotOverlapAndFillTheSlot) {
  const Graph graph = Gpt2(3);
  const int64_t micro_batch = 2, rows = micro_batch * graph.context;
  for (const OpRange range : AllRanges(graph)) {
    const BufferPlan plan = PlanBuffers(graph, range, micro_batch);
    std::map<int64_t, int64_t> sizes;  // by offset
    size_t tensors = 0;
    for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
      if (plan.slot_edge[edge] == BufferPlan::kAbsent) continue;
      sizes[plan.slot_edge[edge]] = Padded(rows * graph.edges[edge].width);
      ++tensors;
    }
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      if (plan.slot_statistics[op] == BufferPlan::kAbsent) continue;
      sizes[plan.slot_statistics[op]] =
          Padded(rows * (graph.ops[op].kind == OpKind::kLayerNorm ? 2 : graph.ops[op].heads));
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
}

// Executes a plan on a memory of labels: every element of scratch remembers which tensor was last
// written there. Whoever reads a tensor must find all of its elements intact.
class LabelMachine {
 public:
  LabelMachine(const Graph& graph, OpRange range, int64_t micro_batch)
      : graph_(graph),
        range_(range),
        micro_batch_(micro_batch),
        rows_(micro_batch * graph.context),
        plan_(PlanBuffers(graph, range, micro_batch)),
        memory_(plan_.scratch_elements) {}

  void Run() {
    const bool last = HasLoss(graph_, range_);
    if (!last) {
      const int edge = graph_.CutEdge(range_.end);
      WriteGradient(edge, plan_.gradient_edge[edge]);
    }
    for (int op = range_.begin; op < range_.end; ++op) Forward(op);
    for (int op = range_.end - 1; op >= range_.begin; --op) Backward(op);
    if (range_.begin > 0) {
      const int edge = graph_.CutEdge(range_.begin);
      ReadGradient(edge, plan_.gradient_edge[edge]);
    }
  }

 private:
  int64_t Size(int edge) const { return rows_ * graph_.edges[edge].width; }

  void Write(int64_t offset, int64_t size, const std::string& label) {
    ASSERT_GE(offset, 0) << label;
    ASSERT_LE(offset + size, plan_.scratch_elements) << label;
    EXPECT_EQ(offset % kAlignElements, 0) << label;
    for (int64_t i = offset; i < offset + size; ++i) memory_[i] = label;
  }
  void Read(int64_t offset, int64_t size, const std::string& label) {
    ASSERT_GE(offset, 0) << label;
    for (int64_t i = offset; i < offset + size; ++i) ASSERT_EQ(memory_[i], label);
  }

  std::string ValueLabel(int edge) const { return "value " + graph_.edges[edge].name; }

  void WriteGradient(int edge, int64_t offset) {
    gradient_label_[edge] = "gradient " + graph_.edges[edge].name;
    Write(offset, Size(edge), gradient_label_[edge]);
  }
  void ReadGradient(int edge, int64_t offset) { Read(offset, Size(edge), gradient_label_[edge]); }

  void Forward(int position) {
    const Op& op = graph_.ops[position];
    if (plan_.forward_workspace[position] >= 0) {
      Write(plan_.forward_workspace[position], WorkspaceElements(graph_, op, micro_batch_), "work");
    }
    if (op.output >= 0 && plan_.scratch_edge[op.output] >= 0) {
      Write(plan_.scratch_edge[op.output], Size(op.output), ValueLabel(op.output));
    }
    for (int edge : op.inputs) {
      if (plan_.scratch_edge[edge] >= 0) {
        Read(plan_.scratch_edge[edge], Size(edge), ValueLabel(edge));
      } else {
        EXPECT_GE(plan_.slot_edge[edge], 0);
      }
    }
  }

  // Writes the results first and reads the operands last, so that an operand which shares memory
  // with a result is caught.
  void Backward(int position) {
    const Op& op = graph_.ops[position];
    if (plan_.backward_workspace[position] >= 0) {
      Write(plan_.backward_workspace[position], WorkspaceElements(graph_, op, micro_batch_),
            "work");
    }
    const bool loss = op.kind == OpKind::kSoftmaxCrossEntropy;
    const bool from_logits = op.output >= 0 && plan_.gradient_edge[op.output] < 0;
    if (op.kind != OpKind::kAdd && !loss) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        Write(plan_.contributions[position][i].source, Size(op.inputs[i]),
              Contribution(position, i));
      }
    }
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
    const std::string source =
        op.kind == OpKind::kAdd ? gradient_label_[op.output] : Contribution(position, input);
    Read(part.source, Size(edge), source);
    if (part.previous < 0) {
      EXPECT_EQ(gradient_label_.count(edge), 0);
      EXPECT_EQ(part.result, part.source);
      gradient_label_[edge] = source;
      return;
    }
    ReadGradient(edge, part.previous);
    gradient_label_[edge] += " + " + source;
    Write(part.result, Size(edge), gradient_label_[edge]);
  }

  const Graph& graph_;
  const OpRange range_;
  const int64_t micro_batch_, rows_;
  const BufferPlan plan_;
  std::vector<std::string> memory_;
  std::map<int, std::string> gradient_label_;  // by edge: what its gradient so far is called
};

TEST(BufferPlanTest, NoTensorIsOverwrittenWhileItIsNeeded) {
  const Graph graph = Gpt2(3);
  for (const OpRange range : AllRanges(graph)) LabelMachine(graph, range, 2).Run();
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
  LabelMachine(graph, {0, 7}, 2).Run();
}

TEST(BufferPlanTest, ScratchDoesNotGrowWithDepth) {
  const Graph two = Gpt2(2), eight = Gpt2(8);
  const auto scratch = [](const Graph& graph) {
    return PlanBuffers(graph, {0, static_cast<int>(graph.ops.size())}, 2).scratch_elements;
  };
  EXPECT_EQ(scratch(two), scratch(eight));
}

TEST(BufferPlanTest, OutputGradientSurvivesAForward) {
  const Graph graph = Gpt2(2);
  const OpRange range{0, graph.CutPoints()[0]};
  const int64_t micro_batch = 2, rows = micro_batch * graph.context;
  const BufferPlan plan = PlanBuffers(graph, range, micro_batch);
  const int edge = graph.CutEdge(range.end);
  const int64_t begin = plan.gradient_edge[edge], end = begin + rows * graph.edges[edge].width;
  for (int op = range.begin; op < range.end; ++op) {
    const int output = graph.ops[op].output;
    if (plan.scratch_edge[output] < 0) continue;
    const int64_t other = plan.scratch_edge[output];
    EXPECT_TRUE(other >= end || other + rows * graph.edges[output].width <= begin);
  }
}

}  // namespace
}  // namespace longhaul::model
