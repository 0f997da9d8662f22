#include "worker/exec/stage_executor.h"

#include <utility>

#include "base/status_macros.h"
#include "worker/exec/interpreter.h"

namespace longhaul::worker {

absl::StatusOr<std::unique_ptr<StageExecutor>> StageExecutor::Create(
    ExecutorOptions options, compute::Stage<float>* stage, Exchange* exchange,
    const data::Batches* batches, DirectiveBox* directives, Clock* clock) {
  auto interpreter = std::make_unique<Interpreter>(std::move(options), stage, exchange, batches,
                                                   directives, clock);
  LH_RETURN_IF_ERROR(interpreter->Start());
  return std::unique_ptr<StageExecutor>(new StageExecutor(std::move(interpreter)));
}

StageExecutor::StageExecutor(std::unique_ptr<Interpreter> interpreter)
    : interpreter_(std::move(interpreter)) {}

StageExecutor::~StageExecutor() = default;

absl::StatusOr<StepResult> StageExecutor::RunStep(int64_t step) {
  return interpreter_->RunStep(step);
}

absl::StatusOr<EvaluationResult> StageExecutor::Evaluate(int64_t step) {
  return interpreter_->Evaluate(step);
}

}  // namespace longhaul::worker
