// Where each tensor of a stage lives: computed once when the stage is built, so that a step
// allocates nothing.
#ifndef LONGHAUL_MODEL_BUFFER_PLAN_H_
#define LONGHAUL_MODEL_BUFFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace longhaul::model {

// Element offsets (not bytes; every tensor is aligned to 16 elements). -1: not present.
// A slot region exists once for each micro-batch in flight and holds what backward needs: the
// stage's input and output, the operators' inputs that backward reads, and their statistics. The
// scratch region exists once and is shared by all micro-batches: temporaries and gradients of edges.
struct BufferPlan {
  std::vector<int64_t> slot_edge;        // by edge: value saved in the slot
  std::vector<int64_t> slot_statistics;  // by op: layer norm mean and 1/deviation, attention lse
  std::vector<int64_t> scratch_edge;     // by edge: value that backward does not read
  std::vector<int64_t> gradient_edge;    // by edge: gradient, in scratch
  int64_t slot_elements = 0;
  int64_t scratch_elements = 0;
};

BufferPlan PlanBuffers(const Graph& graph, OpRange range, int64_t micro_batch);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_BUFFER_PLAN_H_
