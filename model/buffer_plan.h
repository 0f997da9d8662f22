// Where each tensor of a stage lives: computed once when the stage is built, so that a step
// allocates nothing.
#ifndef LONGHAUL_MODEL_BUFFER_PLAN_H_
#define LONGHAUL_MODEL_BUFFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace longhaul::model {

// Every tensor begins at a multiple of this many elements.
inline constexpr int64_t kAlignElements = 16;
constexpr int64_t Padded(int64_t elements) {
  return (elements + kAlignElements - 1) / kAlignElements * kAlignElements;
}

// The gradient that one operator contributes to one of its input edges. An edge with several
// readers (a residual) collects contributions in the order of backward execution. Offsets into
// scratch, or BufferPlan::kAbsent.
struct GradientContribution {
  int64_t source = -1;    // where it is: written there by the operator; kAdd writes nothing, its
                          // output's gradient is the contribution
  int64_t previous = -1;  // gradient of the edge so far; absent for the first contribution
  int64_t result = -1;    // previous + source goes here; `source` for the first contribution
};

// Element offsets (not bytes), or kAbsent.
//
// A slot region exists once for each micro-batch in flight and holds what backward needs: the
// stage's input and output; the inputs of layer norm, linear, GELU and attention; attention's
// output; the logits; statistics. kAdd needs nothing. Backward writes the logits' gradient over the
// logits: they stay in the slot, rather than being recomputed, because the head is a large part of
// the work and 1F1B keeps one slot on the last stage.
//
// The scratch region exists once and is shared by all micro-batches: values that only kAdd reads,
// gradients of edges, workspaces. Tensors that are never needed at the same time share memory. The
// output's gradient overlaps nothing of forward, the input's nothing that backward touches later.
struct BufferPlan {
  static constexpr int64_t kAbsent = -1;

  std::vector<int64_t> slot_edge;           // by edge: value saved in the slot
  std::vector<int64_t> slot_statistics;     // by op: layer norm mean and 1/deviation, attention lse
  std::vector<int64_t> scratch_edge;        // by edge: value that backward does not read
  std::vector<int64_t> gradient_edge;       // by edge: gradient, in scratch; absent for the logits
  std::vector<int64_t> forward_workspace;   // by op: in scratch
  std::vector<int64_t> backward_workspace;  // by op: in scratch
  std::vector<std::vector<GradientContribution>> contributions;  // by op, by input
  int64_t slot_elements = 0;
  int64_t scratch_elements = 0;
  // int32 elements of one slot's token ids (first stage) and targets (last stage), each Padded.
  int64_t slot_integers = 0;
};

// `range` begins and ends at cut points or at the ends of the model; the graph is valid;
// micro_batch * context is from 1 to kRowsMax. Sizes: rows = micro_batch * context.
BufferPlan PlanBuffers(const Graph& graph, OpRange range, int64_t micro_batch);

// Elements that an operator keeps for backward besides edges, and that it needs while it runs;
// compute/ops asks for the same. 0 for most.
int64_t StatisticsElements(const Graph& graph, const Op& op, int64_t micro_batch);
int64_t WorkspaceElements(const Graph& graph, const Op& op, int64_t micro_batch);

// Whether the stage of these operators begins with the embedding; ends with the loss.
bool HasEmbedding(OpRange range);
bool HasLoss(const Graph& graph, OpRange range);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_BUFFER_PLAN_H_
