#include "model/op_kinds.h"

#include <algorithm>

#include "base/check.h"
#include "model/attention_blocks.h"
#include "model/op_checks.h"

namespace longhaul::model {
namespace {

// Elements of the output; of the input for the loss, which has none.
double Elements(const Graph& graph, const Op& op, double rows) {
  const int edge = op.output >= 0 ? op.output : op.inputs[0];
  return rows * static_cast<double>(graph.edges[edge].width);
}

// Operations for each element, counted in the formulas of compute/ops; a
// transcendental function counts as 10.
template <int forward, int backward>
OpFlops ByElements(const Graph& graph, const Op& op, double rows) {
  const double elements = Elements(graph, op, rows);
  return {elements * forward, elements * backward};
}

OpFlops LinearFlops(const Graph& graph, const Op& op, double rows) {
  const double product =
      2 * Elements(graph, op, rows) * static_cast<double>(graph.edges[op.inputs[0]].width);
  return {product, 2 * product};
}

// Multiplied pairs of query and key, of one sequence: a block of queries meets the keys up to the
// block's end.
double AttendedPairs(int64_t context) {
  double pairs = 0;
  for (int64_t begin = 0; begin < context; begin += kAttentionBlockQueries) {
    const int64_t end = std::min(context, begin + kAttentionBlockQueries);
    pairs += static_cast<double>(end - begin) * static_cast<double>(end);
  }
  return pairs;
}

// Forward: Q K^T and P V. Backward: Q K^T again, and the gradients of P, V, Q and K.
OpFlops AttentionFlops(const Graph& graph, const Op& op, double rows) {
  constexpr double kSoftmaxForward = 14, kSoftmaxBackward = 16;  // by score
  const double width = static_cast<double>(graph.edges[op.output].width);
  const double context = static_cast<double>(graph.context);
  const double product = 2 * rows / context * AttendedPairs(graph.context) * width;
  const double scores = rows * (context + 1) / 2 * static_cast<double>(op.heads);
  return {2 * product + scores * kSoftmaxForward, 5 * product + scores * kSoftmaxBackward};
}

int64_t LayerNormStatistics(const Graph& graph, const Op&, int64_t micro_batch) {
  return 2 * micro_batch * graph.context;
}

int64_t RmsNormStatistics(const Graph& graph, const Op&, int64_t micro_batch) {
  return micro_batch * graph.context;
}

int64_t AttentionStatistics(const Graph& graph, const Op& op, int64_t micro_batch) {
  return op.heads * micro_batch * graph.context;
}

int64_t AttentionWorkspace(const Graph& graph, const Op& op, int64_t micro_batch) {
  return AttentionRegions(micro_batch, op.heads) *
         AttentionRegionElements(graph.context, HeadWidth(graph, op));
}

int64_t RotaryConstants(const Graph& graph, const Op& op) {
  return graph.context * HeadWidth(graph, op);
}

// A new kind is a row here, its checks in op_checks.cc, and its calls in compute/stage/op_call.cc.
constexpr OpKindInfo kKinds[] = {
    {.kind = OpKind::kEmbedding,
     .name = "embedding",
     .inputs = 0,
     .parameters_min = 1,
     .parameters_max = 2,
     .has_output = true,
     .attributes = 0,
     .backward_reads_input = false,
     .backward_reads_output = false,
     .passes_gradient_on = false,
     .reads_rows_of_tables = true,
     .parameter_shape = EmbeddingShape,
     .check = CheckNothing,
     .flops = ByElements<1, 2>,
     .statistics = nullptr,
     .workspace = nullptr,
     .constants = nullptr},
    {OpKind::kLayerNorm, "layer_norm", 1, 2, 2, true, kEpsilonAttribute, true, false, false, false,
     NormShape, CheckNorm, ByElements<8, 14>, LayerNormStatistics, nullptr, nullptr},
    {OpKind::kRmsNorm, "rms_norm", 1, 1, 1, true, kEpsilonAttribute, true, false, false, false,
     NormShape, CheckNorm, ByElements<4, 10>, RmsNormStatistics, nullptr, nullptr},
    {OpKind::kLinear, "linear", 1, 1, 2, true, 0, true, false, false, false, LinearShape,
     CheckNothing, LinearFlops, nullptr, nullptr, nullptr},
    {OpKind::kGelu, "gelu", 1, 0, 0, true, 0, true, false, false, false, NoShape, CheckSameWidth,
     ByElements<18, 28>, nullptr, nullptr, nullptr},
    {OpKind::kSwiGlu, "swiglu", 1, 0, 0, true, 0, true, false, false, false, NoShape, CheckSwiGlu,
     ByElements<14, 22>, nullptr, nullptr, nullptr},
    {OpKind::kRotary, "rotary", 1, 0, 0, true,
     kHeadsAttribute | kKvHeadsAttribute | kRotaryAttribute, false, false, false, false, NoShape,
     CheckRotary, ByElements<3, 3>, nullptr, nullptr, RotaryConstants},
    {OpKind::kCausalAttention, "causal_attention", 1, 0, 0, true,
     kHeadsAttribute | kKvHeadsAttribute, true, true, false, false, NoShape, CheckCausalAttention,
     AttentionFlops, AttentionStatistics, AttentionWorkspace, nullptr},
    // Drawing the mask, in backward again, is most of the work.
    {OpKind::kDropout, "dropout", 1, 0, 0, true, kProbabilityAttribute, false, false, false, false,
     NoShape, CheckDropout, ByElements<16, 16>, nullptr, nullptr, nullptr},
    // Backward: the sum of the gradients where it forked.
    {OpKind::kAdd, "add", 2, 0, 0, true, 0, false, false, true, false, NoShape, CheckSameWidth,
     ByElements<1, 1>, nullptr, nullptr, nullptr},
    {OpKind::kSoftmaxCrossEntropy, "softmax_cross_entropy", 1, 0, 0, false, 0, true, false, false,
     false, NoShape, CheckLoss, ByElements<14, 14>, nullptr, nullptr, nullptr},
};

}  // namespace

absl::Span<const OpKindInfo> OpKinds() { return kKinds; }

const OpKindInfo& InfoOf(OpKind kind) {
  const size_t position = static_cast<size_t>(kind);
  LH_CHECK(position < std::size(kKinds) && kKinds[position].kind == kind, "operator kind ",
           position);
  return kKinds[position];
}

const OpKindInfo* FindOpKind(absl::string_view name) {
  for (const OpKindInfo& info : kKinds) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

int64_t HeadWidth(const Graph& graph, const Op& op) {
  return graph.edges[op.inputs[0]].width / (op.heads + 2 * op.kv_heads);
}

}  // namespace longhaul::model
