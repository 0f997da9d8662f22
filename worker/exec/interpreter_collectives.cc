// What the replicas of a stage do together.
#include <vector>

#include "base/status_macros.h"
#include "worker/exec/interpreter.h"
#include "worker/exec/stopwatch.h"

namespace longhaul::worker {

absl::Status StageExecutor::Interpreter::AddGradients(int slot) {
  const int own = static_cast<int>(
      training_groups_.MicroBatches(training_groups_.GroupOf(options_.stage, options_.replica))
          .size());
  const bool reduce = ++pass_.backwards == own && reducer_ != nullptr;
  if (reduce) reducer_->Begin(Deadline());
  compute::GradientTree<float>* const tree = options_.gradient_tree;
  if (tree != nullptr) LH_RETURN_IF_ERROR(tree->BeginMicroBatch());
  // The tree adds its sums after the last operator: nothing is final before.
  if (reduce && tree == nullptr) {
    stage_->WatchBackward([this](int op) { return reducer_->Final(op); });
  }
  LH_RETURN_IF_ERROR(stage_->Backward(slot));
  if (tree != nullptr) LH_RETURN_IF_ERROR(tree->EndMicroBatch());
  return reduce ? reducer_->Final(0) : absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::ReduceGradients(const Instruction& instruction) {
  const Stopwatch wait(*clock_, pass_.timings.wait);
  return reducer_->Finish();
}

// Each replica knows the losses of its own micro-batches; the others' are zero, which adds nothing
// to their bits.
absl::Status StageExecutor::Interpreter::ReduceLosses(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(stage_->backend().Synchronize());
  const Stopwatch wait(*clock_, pass_.timings.wait);
  return options_.collective->SumDoubles(absl::MakeSpan(pass_.losses), Deadline());
}

absl::Status StageExecutor::Interpreter::BroadcastTiedSum(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(SumUses());
  const Stopwatch wait(*clock_, pass_.timings.wait);
  LH_RETURN_IF_ERROR(stage_->backend().Synchronize());  // collectives take what is there
  for (const absl::Span<float> values : tied_gradients_) {
    LH_RETURN_IF_ERROR(options_.collective->Broadcast(values, Deadline()));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::BroadcastVerdict(const Instruction& instruction) {
  std::vector<double> values = ToDoubles(pass_.verdict);
  {
    const Stopwatch wait(*clock_, pass_.timings.wait);
    LH_RETURN_IF_ERROR(options_.collective->BroadcastDoubles(absl::MakeSpan(values), Deadline()));
  }
  LH_ASSIGN_OR_RETURN(pass_.verdict, VerdictFromDoubles(values, TokensMax()));
  return absl::OkStatus();
}

}  // namespace longhaul::worker
