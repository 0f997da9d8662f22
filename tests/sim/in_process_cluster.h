// A whole cluster in one process: the real coordinator and the real workers over the in-process
// network, without RPC. Time stands still except while the test waits.
#ifndef LONGHAUL_TESTS_SIM_IN_PROCESS_CLUSTER_H_
#define LONGHAUL_TESTS_SIM_IN_PROCESS_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checkpoint/shard_store.h"
#include "coordinator/host/coordinator_host.h"
#include "data/dataset.h"
#include "run/run_spec.h"
#include "worker/comm/testing/in_process_transport.h"

namespace longhaul::sim {

// Weights and moments of every parameter, in the model's order.
using ModelState = std::vector<std::vector<float>>;

// One thread drives it. Everything it starts is joined by the destructor.
class InProcessCluster {
 public:
  // `folder` is emptied first and removed at the end.
  explicit InProcessCluster(std::string folder);
  ~InProcessCluster();

  // --- what a test does ---

  void StartCoordinator();
  void KillCoordinator();  // drops it with all that is not durable
  // The incarnation rises with each start of a name.
  void StartWorker(const std::string& name, const std::string& site, int threads);
  void KillWorker(const std::string& name);
  // The control stream breaks and is not dialled again until Reconnect.
  void Disconnect(const std::string& name);
  void Reconnect(const std::string& name);
  // Breaks the data streams to the worker once; they are dialled again.
  void BreakLinks(const std::string& name);

  // Person's requests; failures fail the test.
  const std::string& folder() const { return folder_; }

  void StartRun(const run::RunSpec& spec);
  void StopRun(const std::string& run);
  void ResumeRun(const std::string& run, int stages, std::optional<int64_t> step = std::nullopt);
  void DrainNode(const std::string& node);

  // Lets time pass until the condition holds; fails the test if it does not within five simulated
  // minutes.
  void WaitFor(const std::string& what, const std::function<bool()>& condition);
  void WaitForState(const std::string& run, coordinator::RunState state);
  void WaitForStep(const std::string& run, int64_t step);

  // --- what a test looks at ---

  coordinator::RunRecord Run(const std::string& run);
  // Newest step that the worker has completed, of the stage it is assigned.
  int64_t StepAt(const std::string& worker);
  // Steps that a person would have been shown, from 1.
  std::vector<coordinator::CompletedStep> Steps(const std::string& run);
  // State of the newest checkpoint, put together from its shards.
  ModelState State(const std::string& run);

  // A spec over the cluster's small text, valid as it is.
  run::RunSpec Spec(const std::string& name) const;

 private:
  class Sink;
  class Remote;
  class Worker;

  void Advance();
  void Ask(coordinator::CoordinatorHost::PersonEvent event);
  void Connect(Worker& worker);
  coordinator::CoordinatorHost& host();

  const std::string folder_;
  FakeClock clock_;
  worker::InProcessNetwork network_{clock_};
  data::DatasetStore datasets_;
  checkpoint::ShardStore shards_;
  coordinator::StoredCheckpoints checkpoints_;
  data::DatasetIndex index_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
  std::map<std::string, uint64_t> incarnations_;

  std::unique_ptr<Sink> sink_;
  std::unique_ptr<coordinator::Journal> journal_;
  std::unique_ptr<coordinator::MetricsStore> metrics_;
  std::unique_ptr<coordinator::CoordinatorHost> host_;
};

}  // namespace longhaul::sim

#endif  // LONGHAUL_TESTS_SIM_IN_PROCESS_CLUSTER_H_
