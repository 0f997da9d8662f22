// What operators cost, from shapes alone: the planner's and `longhaul plan`'s numbers.
#ifndef LONGHAUL_MODEL_COST_H_
#define LONGHAUL_MODEL_COST_H_

#include <cstdint>

#include "model/graph.h"
#include "model/precision.h"

namespace longhaul::model {

// For one micro-batch. Linear: 2 * rows * in * out forward, twice that backward. Attention: the
// products that the kernel executes, about the causal half. The rest by elements.
struct Cost {
  double forward_flops = 0;
  double backward_flops = 0;
  double bytes_moved = 0;  // forward and backward memory traffic, to first order
};
Cost OpCost(const Graph& graph, int op, int64_t micro_batch,
            Precision precision = Precision::kFloat32);
Cost RangeCost(const Graph& graph, OpRange range, int64_t micro_batch,
               Precision precision = Precision::kFloat32);

// Memory of one stage in bytes: exactly what compute/stage allocates.
struct StageMemory {
  int64_t weights = 0;          // fp32
  int64_t working_weights = 0;  // in bf16 beside them; 0 in fp32, which computes on the weights
  int64_t gradients = 0;        // fp32, one accumulator for each use
  int64_t optimizer = 0;        // fp32, AdamW moments
  int64_t activations = 0;      // all slots
  int64_t scratch = 0;
  int64_t constants = 0;  // tables of rotary embeddings
  int64_t total() const {
    return weights + working_weights + gradients + optimizer + activations + scratch + constants;
  }
  bool operator==(const StageMemory&) const = default;
};
// `slots`: micro-batches in flight that the stage's program needs. `range` and `recompute` as in
// PlanBuffers. Sizes saturate at kBytesMax (model/limits.h), also where micro_batch * context
// exceeds kRowsMax.
StageMemory MemoryOf(const Graph& graph, OpRange range, int64_t micro_batch, int slots,
                     bool recompute = false, Precision precision = Precision::kFloat32);

// Bytes of one micro-batch's fp32 activation over the cut at `position`; saturates likewise.
int64_t BoundaryBytes(const Graph& graph, int position, int64_t micro_batch);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_COST_H_
