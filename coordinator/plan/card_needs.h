// What a worker on a card keeps in its memory beside the buffers of its stage. Its context and the
// workspace of its matrix products are no part of what it reports as its memory.
#ifndef LONGHAUL_COORDINATOR_PLAN_CARD_NEEDS_H_
#define LONGHAUL_COORDINATOR_PLAN_CARD_NEEDS_H_

#include <cstdint>
#include <vector>

#include "coordinator/plan/cost_model.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "model/graph.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// Bytes.
struct CardNeeds {
  double cut_bytes_max = 0;    // fp32, of one micro-batch over the widest cut
  double tied_bytes = 0;       // fp32, of what the first and the last stage share
  double attention_bytes = 0;  // workspace of attention's kernels
};
// Of any stages that the units may be cut into. `of_cards`: the run's train.precision.
CardNeeds CardNeedsOf(const Units& units, model::Precision of_cards);
// Of the plan's own cuts.
CardNeeds CardNeedsOf(const model::Graph& graph, const Plan& plan, const run::TrainSpec& train);

// At most what cuDNN's backward of the model's largest attention keeps in bf16 (docs/cuda.md): for
// each query and head a row of fp32 sums and a sum of its softmax, with grouped queries rows of k's
// and v's gradients for each query head, and, where it adds in a fixed order, bf16 scores of
// context x context of each head, if all is then at most 256 MiB.
double AttentionBytes(const model::Graph& graph, int64_t micro_batch);

// Of NCCL for one communicator: up to 32 channels, each with buffers of NCCL's three protocols (4,
// 4.7 and 0.5 MiB by default), for a ring and some more for trees.
inline constexpr int64_t kNcclBytes = int64_t{512} << 20;

// Whether the nodes of a stage sum by NCCL: they are on cards of their own, and the run does not
// ask for exact sums.
bool SumByNccl(const std::vector<const NodeProfile*>& replicas, bool exact);

// Where in its pipeline a stage is.
struct StagePosition {
  int stage = 0;
  int stages = 1;
  bool sums_by_nccl = false;
};
// Bytes that a worker on a card keeps there besides its stage: up to 8 encoded boundary tensors on
// their way (worker/exec/device_links.h), at most as long as floats, on the first stage the tied
// tensors that it receives, and what libraries take.
double BytesBeside(const CardNeeds& needs, const StagePosition& position);

// Bytes that a stage may take of its node's memory: all of a processor's, of a card's the rest.
int64_t MemoryForStage(const NodeProfile& node, const CardNeeds& needs,
                       const StagePosition& position);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CARD_NEEDS_H_
