// For tests: all device groups of a small run in one process, over the in-process transport and
// mesh, one thread for each; and the same run on one stage without executor or exchange.
#ifndef LONGHAUL_WORKER_EXEC_TESTING_EXECUTOR_CLUSTER_H_
#define LONGHAUL_WORKER_EXEC_TESTING_EXECUTOR_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/testing/watched_clock.h"
#include "compute/backend/backend.h"
#include "compute/stage/stage.h"
#include "run/run_spec.h"
#include "schedule/groups.h"
#include "worker/comm/exchange.h"
#include "worker/comm/exchange_router.h"
#include "worker/comm/testing/in_process_transport.h"
#include "worker/exec/stage_executor.h"
#include "worker/exec/testing/cluster_data.h"

namespace longhaul::worker {

struct ClusterOptions {
  int stages = 1;
  std::vector<int> replicas = {};             // by stage; empty: one each
  std::vector<std::vector<int>> owners = {};  // of the micro-batches, by stage
  bool exact_replicas = false;
  int micro_batches = 6;  // a step
  std::string schedule = "1f1b";
  bool tied = true;
  bool llama = false;          // with grouped queries and dropout, instead of the GPT-2
  bool inside_blocks = false;  // cut anywhere, not between blocks
  bool recompute = false;
  std::string codec = "none";    // of every link
  int threads = 1;               // of each stage's backend
  std::vector<bool> cards = {};  // by group: on an emulated card; empty: none
  bool bfloat16 = false;         // that cards compute in
  ClusterDataOptions data = {};
  absl::Duration wait_max = absl::Seconds(60);
};

// A wait with a deadline so far away is a stage's for a peer: those of connections are shorter.
inline constexpr absl::Duration kLongWait = absl::Seconds(30);

// The last step's gradient by parameter name, summed over tokens and uses.
using GradientValues = std::map<std::string, std::vector<float>>;

// A GPT-2 of 4 blocks, hidden 32, clipping active.
run::RunSpec ClusterSpec(const ClusterOptions& options);

// Weights and moments by parameter name, as bits, so that NaNs compare too.
using StateBits = std::map<std::string, std::vector<uint32_t>>;

class ExecutorCluster {
 public:
  explicit ExecutorCluster(const ClusterOptions& options);
  ~ExecutorCluster();

  // Device groups, numbered stage by stage and replica by replica; with one replica each they are
  // the stages.
  int groups() const { return static_cast<int>(groups_.size()); }
  int stages() const { return options_.stages; }
  StageExecutor& executor(int group) { return *groups_[group].executor; }
  compute::Stage<float>& stage(int group) { return *groups_[group].stage; }
  Exchange& exchange(int group) { return *groups_[group].exchange; }
  Collective& collective(int group) { return *groups_[group].collective; }
  DirectiveBox& directives() { return directives_; }
  WatchedClock& clock() { return clock_; }
  // Breaks every open connection once.
  void BreakConnections();
  const model::Graph& graph() const { return graph_; }

  // Calls `work` for every group, each on a thread of its own, and waits for all.
  void OnEveryGroup(absl::FunctionRef<void(int group)> work);
  // Steps first ... first + count - 1; results by group and step, ending at the first error.
  std::vector<std::vector<absl::StatusOr<StepResult>>> RunSteps(int64_t first, int count);
  std::vector<absl::StatusOr<EvaluationResult>> Evaluate(int64_t step);

  // Of all groups; a parameter that two of them hold must have the same bits on both.
  StateBits State();
  // Of the stages' first replicas; the others' must have the same bits.
  GradientValues Gradients();

 private:
  struct GroupParts {
    std::unique_ptr<compute::Backend> backend;
    std::unique_ptr<compute::Stage<float>> stage;
    std::unique_ptr<compute::GradientTree<float>> tree;
    std::unique_ptr<Collective> collective;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<ExchangeRouter> router;
    std::unique_ptr<Exchange> exchange;
    std::unique_ptr<StageExecutor> executor;
  };

  schedule::Shape MakeEvaluationShape() const;
  void BuildCollectives();
  void BuildGroup(int group, const ExecutorOptions& shared,
                  const std::vector<schedule::Program>& programs);
  ExchangeOptions MakeExchangeOptions(int group,
                                      const std::vector<schedule::Program>& programs) const;

  const ClusterOptions options_;
  const run::RunSpec spec_;
  const model::Graph graph_;
  const schedule::Shape shape_;
  const schedule::Groups layout_;
  std::vector<model::OpRange> ranges_;
  schedule::Shape evaluation_shape_;
  const ClusterData data_;
  DirectiveBox directives_;
  WatchedClock clock_{RealClock()};
  InProcessNetwork network_;
  std::vector<GroupParts> groups_;
};

// The definition of the training that the executors must reproduce, straight over the operators of
// one stage that holds the whole model.
class ReferenceRun {
 public:
  explicit ReferenceRun(const ClusterOptions& options);

  struct Step {
    double loss_sum = 0;
    double gradient_norm = 0;
    int64_t targets = 0;  // that are not ignored
  };
  Step RunStep(int64_t step);
  double ValidationLossSum();
  StateBits State();
  GradientValues Gradients();

 private:
  // Adds the gradients of the step's micro-batches up, in order or as the exact tree has it.
  double SumGradients(int64_t step);
  std::vector<float> Accumulators();
  int64_t CountTargets(int64_t step) const;

  const bool exact_;
  const run::RunSpec spec_;
  const model::Graph graph_;
  const ClusterData data_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<compute::Stage<float>> stage_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_TESTING_EXECUTOR_CLUSTER_H_
