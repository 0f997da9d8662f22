// Where each tensor of a stage lives: computed once when the stage is built, so that a step
// allocates nothing.
#ifndef LONGHAUL_MODEL_BUFFER_PLAN_H_
#define LONGHAUL_MODEL_BUFFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "model/graph.h"
#include "model/precision.h"

namespace longhaul::model {

// Every tensor begins at a multiple of this many elements.
inline constexpr int64_t kAlignElements = 16;
constexpr int64_t Padded(int64_t elements) {
  return (elements + kAlignElements - 1) / kAlignElements * kAlignElements;
}

// Elements from one row of the logits, or of their gradient, to the next: the vocabulary, but in
// bf16, which cards alone compute in, rounded up to a multiple of 64 unless it is one of 8. A row
// then begins at a multiple of 16 bytes, without which a card's fast kernels for products, that
// copy tiles by their strides, do not take the matrix. What lies between rows is zero: no operator
// writes there. Every other edge has its rows one after the other.
int64_t LogitsPitch(int64_t vocab, Precision precision);

// Elements that an edge takes in memory for one micro-batch.
int64_t EdgeElements(const Graph& graph, int edge, int64_t micro_batch, Precision precision);

// The gradient that one operator contributes to one of its input edges. An edge with several
// readers (a residual) collects contributions in the order of backward execution, those of later
// stages first. Offsets into scratch, or BufferPlan::kAbsent.
struct GradientContribution {
  int64_t source = -1;    // where it is: written there by the operator; one that passes its
                          // gradient on writes nothing, its output's gradient is the contribution
  int64_t previous = -1;  // gradient of the edge so far; absent for the first contribution
  int64_t result = -1;    // previous + source goes here; `source` for the first contribution
};

// One action of backward: an operator's backward, or its forward again.
struct BackwardAction {
  int op = 0;
  bool again = false;
};

// What of an edge that crosses the stage is copied, within one region.
struct EdgeCopy {
  int edge = 0;
  int64_t from = 0;
  int64_t to = 0;
};

// Element offsets (not bytes), or kAbsent. Elements are those of activations, in the stage's
// precision; statistics and workspaces are fp32 and take WideElements() for each number. Constants
// are a region of fp32 numbers.
//
// A slot region exists once for each micro-batch in flight and holds what backward needs: the
// stage's input and output; values and statistics that backward reads (op_kinds.h). Backward writes
// the logits' gradient over the logits: they stay in the slot, rather than being recomputed,
// because the head is a large part of the work and 1F1B keeps one slot on the last stage.
//
// With recomputation a slot keeps, of every block but the loss's, only the edges that leave it;
// backward of a block begins with the forward of those of its operators whose values it reads.
//
// Input and output hold the edges of their cut one after another, each at a multiple of
// kAlignElements. Edges that cross the whole stage are copied from one to the other, their
// gradients the other way.
//
// The scratch region exists once and is shared by all micro-batches: values that backward does not
// read or makes again, gradients of edges, workspaces. Tensors that are never needed at the same
// time share memory. The output's gradient overlaps nothing of forward, the input's nothing that
// backward touches later.
struct BufferPlan {
  static constexpr int64_t kAbsent = -1;

  std::vector<int64_t> slot_edge;           // by edge: value saved in the slot
  std::vector<int64_t> scratch_edge;        // by edge: value during forward, where not in the slot
  std::vector<int64_t> again_edge;          // by edge: value made again during backward, in scratch
  std::vector<int64_t> gradient_edge;       // by edge: gradient, in scratch; absent for the logits
  std::vector<int64_t> slot_statistics;     // by op: saved in the slot
  std::vector<int64_t> scratch_statistics;  // by op: during forward, where not in the slot
  std::vector<int64_t> again_statistics;    // by op: made again during backward, in scratch
  std::vector<int64_t> forward_workspace;   // by op: in scratch; the three of them
  std::vector<int64_t> again_workspace;
  std::vector<int64_t> backward_workspace;
  std::vector<int64_t> constants;                                // by op: in the constants region
  std::vector<std::vector<GradientContribution>> contributions;  // by op, by input
  std::vector<BackwardAction> backward;                          // in order

  // Input and output of the stage in the slot, and their gradients in scratch; absent where the
  // stage has tokens or the loss.
  int64_t input = kAbsent, output = kAbsent;
  int64_t input_gradient = kAbsent, output_gradient = kAbsent;
  std::vector<EdgeCopy> forward_copies;   // in the slot, after forward
  std::vector<EdgeCopy> backward_copies;  // in scratch, after backward

  int64_t slot_elements = 0;
  int64_t scratch_elements = 0;
  int64_t constant_elements = 0;  // operators with equal constants share them
  // int32 elements of one slot's token ids (first stage) and targets (last stage), each Padded.
  int64_t slot_integers = 0;
};

// `range` begins and ends at cut points or at the ends of the model; the graph is valid;
// micro_batch * context is from 1 to kRowsMax. Sizes: rows = micro_batch * context.
BufferPlan PlanBuffers(const Graph& graph, OpRange range, int64_t micro_batch,
                       bool recompute = false, Precision precision = Precision::kFloat32);

// Operators of the range whose forward a stage with recomputation runs again, ascending.
std::vector<int> RecomputedOps(const Graph& graph, OpRange range);

// Elements of one micro-batch's activation over a cut, as sent: the edges of CutEdges one after
// another, each but the last Padded.
int64_t BoundaryElements(const Graph& graph, int position, int64_t micro_batch);

// fp32 numbers that an operator keeps for backward besides edges, that it needs while it runs, and
// that are computed once for a stage; compute/ops asks for the same. 0 for most.
int64_t StatisticsElements(const Graph& graph, const Op& op, int64_t micro_batch);
int64_t WorkspaceElements(const Graph& graph, const Op& op, int64_t micro_batch);
int64_t ConstantElements(const Graph& graph, const Op& op);

// Whether the stage of these operators begins with the embedding; ends with the loss.
bool HasEmbedding(OpRange range);
bool HasLoss(const Graph& graph, OpRange range);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_BUFFER_PLAN_H_
