// One assignment from arrival to end: builds the stage, trains it, stores its shards, reports.
#ifndef LONGHAUL_WORKER_HOST_STAGE_JOB_H_
#define LONGHAUL_WORKER_HOST_STAGE_JOB_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "data/dataset.h"
#include "data/run_data.h"
#include "worker/exec/stage_executor.h"
#include "worker/host/assignment.h"
#include "worker/host/exchange_totals.h"
#include "worker/host/kept_shards.h"
#include "worker/host/outbox.h"
#include "worker/host/replica_group.h"
#include "worker/host/retry.h"
#include "worker/host/shard_keeper.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {

// What a job shares with its host.
struct StageJobContext {
  const WorkerHostDependencies& dependencies;
  Outbox& outbox;
  ExchangeTotals& totals;
  data::DatasetStore& datasets;  // of this node; knows what it has verified
};

// Owns a thread that runs the whole life of the assignment. All methods are thread-safe and return
// at once; the destructor cancels and joins, and is called where it may take as long as one
// operator.
class StageJob {
 public:
  // `options` has peer_silence_max.
  // `previous` is destroyed by this job's thread before it builds anything, so that two stages are
  // never in memory together. The other arguments outlive the job.
  StageJob(Assignment assignment, WorkerHostOptions options, const StageJobContext& context,
           std::unique_ptr<StageJob> previous);
  ~StageJob();

  const Assignment& assignment() const { return assignment_; }
  int64_t completed_step() const;
  std::string phase() const;  // "loading", "training", ...: for people
  // "stage 1 replica 2"; "device group 3" until the assignment was checked.
  std::string name() const;

  // `rendezvous`: of each replica of the stage; not used where it has one.
  void Start(std::vector<std::string> rendezvous);
  void Stop();  // after the step that the first stage is at
  // Ends what the job does or, once it has ended, waits for.
  void Cancel(const absl::Status& reason);
  // The same, but the run is told, as of a failure of the stage.
  void Fail(const absl::Status& reason);

 private:
  void Break(const absl::Status& reason, bool failed);
  void Run();
  // Tells the run why the stage ended early; not where it was cancelled.
  void ReportFailure(const absl::Status& ended);
  // OK, or why the device is of no more use.
  absl::Status LookAtDevice();
  absl::Status RunToEnd();

  // Checks the assignment before anything is fetched for it.
  absl::Status Prepare();
  absl::Status OpenData();
  // Makes the set complete and sound on this node.
  absl::Status FetchData(const std::string& id);
  // That of the node where it has a sound one, else the coordinator's.
  absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string& id);
  // For one transfer: transfer_max from now, and until the job is cancelled.
  Patience MakePatience();
  // Tells the coordinator, which waits for prepare_max of silence only, that the job goes on.
  void SayPreparing();
  // The same, not often, in work of many small pieces. An error: the job is cancelled.
  absl::Status GoesOn();
  absl::Status Build();
  KeptShards MakeKeptShards();
  absl::Status AwaitStart();
  ExecutorOptions MakeExecutorOptions();
  absl::Status Train();
  absl::Status TrainSteps(Exchange& exchange);
  // The stage has trained, but its peers may not have: until all have ended its exchange stays, so
  // that the last frames, and the word that the peers' last frames are consumed, outlive broken
  // connections. A peer that cannot be reached any more fails itself if it still needs something.
  void AwaitRelease();
  // What the stage needs to train. The job may wait long for its release; its memory need not.
  void FreeMemory();
  absl::StatusOr<StepReport> MakeReport(StageExecutor& executor, const StepResult& result);
  absl::Status Save(int64_t step, bool last);
  void End(int64_t step);
  void OnShard(const ShardTask& task, const absl::Status& status);
  absl::Status CheckCancelled();
  void SetPhase(const std::string& phase);
  void Log(LogLevel level, const std::string& text) const;

  const Assignment assignment_;
  const WorkerHostOptions options_;  // with peer_silence_max
  const WorkerHostDependencies& dependencies_;
  Outbox& outbox_;
  ExchangeTotals& totals_;
  data::DatasetStore& datasets_;
  std::unique_ptr<StageJob> previous_;
  // Its own, so that Cancel ends the transfers of this job alone. A run that has ended is not
  // cancelled while its last shard is under way.
  const std::unique_ptr<RemoteStore> remote_;
  checkpoint::ShardStore local_shards_;
  DirectiveBox directives_;

  // Made and used by the job's thread.
  absl::Time preparing_said_;
  data::Split split_;
  std::optional<data::RunTokens> tokens_;  // first and last stage
  std::optional<data::Batches> batches_;
  StagePlan plan_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<compute::Stage<float>> stage_;
  std::unique_ptr<compute::GradientTree<float>> gradient_tree_;  // of exact replicas
  std::optional<int64_t> divergence_;                            // the run cannot go on
  std::string damaged_shard_;  // of the checkpoint, that nobody has intact; empty: none

  ReplicaGroup replicas_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  Exchange* exchange_ = nullptr;  // while training; for Cancel
  bool started_ = false;
  std::vector<std::string> rendezvous_;  // of the stage's replicas, once started
  absl::Status cancelled_;
  bool failed_ = false;  // cancelled_ is a failure
  int64_t completed_step_;
  std::string phase_ = "loading";
  std::string name_;

  // The keeper's thread's: when it was last said that a checkpoint is given up for others.
  absl::Time skipped_said_ = absl::InfinitePast();
  std::unique_ptr<ShardKeeper> keeper_;  // the job's thread's; its thread uses what is above
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_STAGE_JOB_H_
