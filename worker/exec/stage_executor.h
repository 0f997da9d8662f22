// Interprets a device group's program: each instruction is one call on the stage, the batches, the
// exchange or the collective.
#ifndef LONGHAUL_WORKER_EXEC_STAGE_EXECUTOR_H_
#define LONGHAUL_WORKER_EXEC_STAGE_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "compute/stage/gradient_tree.h"
#include "compute/stage/stage.h"
#include "data/batches.h"
#include "model/graph.h"
#include "run/run_spec.h"
#include "schedule/program.h"
#include "worker/comm/collective.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

// What all stages do after a step; carried by the step's verdict, so all agree on the step.
// The numbers are those on the wire; 1 is no directive.
enum class Directive : uint32_t { kNone = 0, kStop = 2 };

// Asked by the first stage once a step, when it decides the verdict. Thread-safe: set by the
// control loop, taken by the executor.
class DirectiveBox {
 public:
  void Set(Directive directive) { pending_ = directive; }
  Directive Take() { return pending_.exchange(Directive::kNone); }

 private:
  std::atomic<Directive> pending_{Directive::kNone};
};

// What a step cost this stage, in seconds. What is left of the total is sending (encoding above
// all) and reading batches.
struct StepTimings {
  double total = 0;    // of the executor's thread
  double compute = 0;  // in the operators, the norm and the optimizer: the thread's, or the card's
  double wait = 0;     // in receives, decoding included, and in collectives; no card computed then
};

struct StepResult {
  int64_t step = 0;
  bool applied = true;       // false: skipped, the norm was not finite or no token counted
  double gradient_norm = 0;  // of the mean gradient, before clipping
  double loss_sum = 0;       // last stage only, every replica: over the step's tokens
  int64_t tokens = 0;        // of the whole global batch, those that are targets
  double learning_rate = 0;
  Directive directive = Directive::kNone;
  StepTimings timings;
};

struct EvaluationResult {
  double loss_sum = 0;  // last stage only, every replica
  int64_t targets = 0;  // in the validation split; 0 on stages without batches
};

struct ExecutorOptions {
  const run::RunSpec* spec = nullptr;
  const model::Graph* graph = nullptr;
  Epoch epoch;
  int stage = 0;
  int replica = 0;
  model::OpRange range;
  std::vector<model::OpRange> ranges;  // of all stages
  schedule::Shape shape;               // that the program is of
  schedule::Program program;
  schedule::Shape evaluation_shape;
  schedule::Program evaluation_program;       // empty instructions: no validation split
  std::vector<LinkOptions> links;             // the exchange's; cards prepare for them
  absl::Duration wait_max = absl::Hours(24);  // of a single wait for a peer that is there
  Collective* collective = nullptr;           // of the stage's replicas; null: there is one
  // For the group's micro-batches of a step: gradients are summed over a tree. Null: in order.
  compute::GradientTree<float>* gradient_tree = nullptr;
  // Asked before each instruction; an error ends the step. A pipeline of one stage waits for no
  // peer and would hear of a cancelled exchange nowhere else. Empty: never.
  std::function<absl::Status()> check_cancelled;
};

// One thread. Everything passed by pointer outlives the executor.
class StageExecutor {
 public:
  // `batches`: first and last stage; null elsewhere. `directives`: first stage's first replica;
  // null elsewhere. ResourceExhausted if the stage's device has no memory left for what it needs.
  static absl::StatusOr<std::unique_ptr<StageExecutor>> Create(
      ExecutorOptions options, compute::Stage<float>* stage, Exchange* exchange,
      const data::Batches* batches, DirectiveBox* directives, Clock* clock);
  ~StageExecutor();

  // Runs the program once: optimizer step `step` (1-based), which must follow the stage's state. An
  // error (deadline, cancelled, peer, a token outside the vocabulary) leaves the stage's weights as
  // after some step, never half-applied, but its gradients undefined; it names the stage, the step
  // and the instruction in front of what the exchange says.
  //
  // The gradient is the mean over the step's targets, clipped by its global norm. A step whose norm
  // is not finite, or that has no target (data/batches.h), leaves weights and moments as they are,
  // on all stages; Adam's bias correction goes by the run's step number, so that it does not depend
  // on which steps were skipped.
  absl::StatusOr<StepResult> RunStep(int64_t step);

  // Loss over the whole validation split with the weights after `step`; at most once for a step,
  // since its frames are keyed by it.
  absl::StatusOr<EvaluationResult> Evaluate(int64_t step);

 private:
  class Interpreter;
  explicit StageExecutor(std::unique_ptr<Interpreter> interpreter);
  std::unique_ptr<Interpreter> interpreter_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_STAGE_EXECUTOR_H_
