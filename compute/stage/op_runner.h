// Runs the operators of a stage, neighbours together where they can.
#ifndef LONGHAUL_COMPUTE_STAGE_OP_RUNNER_H_
#define LONGHAUL_COMPUTE_STAGE_OP_RUNNER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/stage/fusion.h"
#include "compute/stage/op_call.h"
#include "compute/stage/stage.h"
#include "compute/stage/stage_arrays.h"
#include "model/graph.h"

namespace longhaul::compute {

// With `found` the operators run one by one, and what they write is looked at. One thread at a
// time.
template <typename T>
class OpRunner {
 public:
  // All must outlive it.
  OpRunner(const model::Graph& graph, model::OpRange range, Backend& backend,
           const StageArrays<T>& arrays)
      : graph_(graph), backend_(backend), arrays_(arrays), plan_(PlanFusions(graph, range)) {}

  // Forward of an operator, together with the next one if that runs next (else null) and they can.
  // How many operators that was.
  absl::StatusOr<int> Forward(const OpCall<T>& call, const OpCall<T>* next, NotFinite* found) const;

  // Backward of an operator, together with the one before it in the same way, and what becomes of
  // the gradients of their inputs.
  absl::StatusOr<int> Backward(const OpCall<T>& call, const OpCall<T>* before,
                               NotFinite* found) const;

 private:
  // Where an edge has several readers, its gradient is the sum of theirs, the last reader's first.
  absl::Status CollectContributions(int position) const;
  // Whether the operator's kernel did that too.
  absl::StatusOr<bool> BackwardOntoSum(const OpCall<T>& call) const;

  const model::Graph& graph_;
  Backend& backend_;
  const StageArrays<T>& arrays_;
  const FusionPlan plan_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_OP_RUNNER_H_
