// For tests: all stages of a small run in one process, over the in-process transport, one thread
// for each stage; and the same run on one stage without executor or exchange.
#ifndef LONGHAUL_WORKER_EXEC_EXECUTOR_CLUSTER_H_
#define LONGHAUL_WORKER_EXEC_EXECUTOR_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "compute/stage/stage.h"
#include "data/batches.h"
#include "data/token_source.h"
#include "run/run_spec.h"
#include "worker/comm/exchange.h"
#include "worker/comm/in_process_transport.h"
#include "worker/exec/stage_executor.h"

namespace longhaul::worker {

struct ClusterOptions {
  int stages = 1;
  std::string schedule = "1f1b";
  bool tied = true;
  std::string codec = "none";  // of every link
  int threads = 1;             // of each stage's backend
  int32_t token_outside = -1;  // put into the training part, where every sequence meets it
  absl::Duration wait_max = absl::Seconds(60);
};

// A GPT-2 of 4 blocks, hidden 32, 6 micro-batches a step, clipping active.
run::RunSpec ClusterSpec(const ClusterOptions& options);

// Weights and moments by parameter name, as bits, so that NaNs compare too.
using StateBits = std::map<std::string, std::vector<uint32_t>>;

class ExecutorCluster {
 public:
  explicit ExecutorCluster(const ClusterOptions& options);
  ~ExecutorCluster();

  int stages() const { return static_cast<int>(stages_.size()); }
  StageExecutor& executor(int stage) { return *stages_[stage].executor; }
  compute::Stage<float>& stage(int stage) { return *stages_[stage].stage; }
  Exchange& exchange(int stage) { return *stages_[stage].exchange; }
  DirectiveBox& directives() { return directives_; }
  // Breaks every open connection once.
  void BreakConnections();
  const model::Graph& graph() const { return graph_; }

  // Calls `work` for every stage, each on a thread of its own, and waits for all.
  void OnEveryStage(absl::FunctionRef<void(int stage)> work);
  // Steps first ... first + count - 1; results by stage and step, ending at the first error.
  std::vector<std::vector<absl::StatusOr<StepResult>>> RunSteps(int64_t first, int count);
  std::vector<absl::StatusOr<EvaluationResult>> Evaluate(int64_t step);

  // Of all stages; a parameter that two stages hold must have the same bits on both.
  StateBits State();

 private:
  struct StageParts {
    std::unique_ptr<compute::Backend> backend;
    std::unique_ptr<compute::Stage<float>> stage;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<ExchangeRouter> router;
    std::unique_ptr<Exchange> exchange;
    std::unique_ptr<StageExecutor> executor;
  };

  void BuildStage(int stage, const ExecutorOptions& shared,
                  const std::vector<schedule::Program>& programs);
  ExchangeOptions MakeExchangeOptions(int stage,
                                      const std::vector<schedule::Program>& programs) const;

  const ClusterOptions options_;
  const run::RunSpec spec_;
  const model::Graph graph_;
  std::vector<model::OpRange> ranges_;
  std::unique_ptr<data::TokenSource> tokens_;
  std::unique_ptr<data::Batches> batches_;
  DirectiveBox directives_;
  InProcessNetwork network_;
  std::vector<StageParts> stages_;
};

// The definition of the training that the executors must reproduce, straight over the operators of
// one stage that holds the whole model.
class ReferenceRun {
 public:
  explicit ReferenceRun(const ClusterOptions& options);

  struct Step {
    double loss_sum = 0;
    double gradient_norm = 0;
  };
  Step RunStep(int64_t step);
  double ValidationLossSum();
  StateBits State();

 private:
  const run::RunSpec spec_;
  const model::Graph graph_;
  std::unique_ptr<data::TokenSource> tokens_;
  std::unique_ptr<data::Batches> batches_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<compute::Stage<float>> stage_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_EXECUTOR_CLUSTER_H_
