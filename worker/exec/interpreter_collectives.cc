// What the replicas of a stage do together.
#include <vector>

#include "base/status_macros.h"
#include "worker/exec/interpreter.h"
#include "worker/exec/stopwatch.h"

namespace longhaul::worker {

absl::Status StageExecutor::Interpreter::ReduceGradients(const Instruction& instruction) {
  const Stopwatch wait(*clock_, pass_.timings.wait);
  for (const compute::StageGradient<float>& gradient : stage_->gradients()) {
    LH_RETURN_IF_ERROR(options_.collective->AllReduceSum(gradient.values, Deadline()));
  }
  return absl::OkStatus();
}

// Each replica knows the losses of its own micro-batches; the others' are zero, which adds nothing
// to their bits.
absl::Status StageExecutor::Interpreter::ReduceLosses(const Instruction& instruction) {
  const Stopwatch wait(*clock_, pass_.timings.wait);
  return options_.collective->SumDoubles(absl::MakeSpan(pass_.losses), Deadline());
}

absl::Status StageExecutor::Interpreter::BroadcastTiedSum(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(SumUses());
  const Stopwatch wait(*clock_, pass_.timings.wait);
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
  LH_ASSIGN_OR_RETURN(pass_.verdict, VerdictFromDoubles(values));
  return absl::OkStatus();
}

}  // namespace longhaul::worker
