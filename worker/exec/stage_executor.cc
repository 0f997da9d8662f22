#include "worker/exec/stage_executor.h"

#include <utility>

#include "worker/exec/interpreter.h"

namespace longhaul::worker {

StageExecutor::StageExecutor(ExecutorOptions options, compute::Stage<float>* stage,
                             Exchange* exchange, const data::Batches* batches,
                             DirectiveBox* directives, Clock* clock)
    : interpreter_(std::make_unique<Interpreter>(std::move(options), stage, exchange, batches,
                                                 directives, clock)) {}

StageExecutor::~StageExecutor() = default;

absl::StatusOr<StepResult> StageExecutor::RunStep(int64_t step) {
  return interpreter_->RunStep(step);
}

absl::StatusOr<EvaluationResult> StageExecutor::Evaluate(int64_t step) {
  return interpreter_->Evaluate(step);
}

}  // namespace longhaul::worker
