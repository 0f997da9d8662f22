// Private to the host: slow work off the loop, one piece at a time.
#ifndef LONGHAUL_COORDINATOR_HOST_WORK_THREAD_H_
#define LONGHAUL_COORDINATOR_HOST_WORK_THREAD_H_

#include <atomic>
#include <functional>
#include <thread>
#include <variant>

#include "absl/status/statusor.h"
#include "base/bounded_queue.h"
#include "base/clock.h"
#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/host/checkpoints.h"

namespace longhaul::coordinator {

// A manifest to commit, with the spec of its run.
struct CommitWork {
  checkpoint::Manifest manifest;
  run::RunSpec spec;
};
using Work = std::variant<RequestPlan, CommitWork, PruneCheckpoints, DropShards>;

// Submit is for one thread at a time. Every plan and commit is answered by one event, unless the
// object ends before.
class WorkThread {
 public:
  struct Dependencies {
    Clock* clock = nullptr;
    std::function<absl::StatusOr<Plan>(const PlanRequest&)> planner;
    Checkpoints* checkpoints = nullptr;
    std::function<void(Event)> answer;  // called from the work thread and from Submit
  };
  explicit WorkThread(Dependencies dependencies);
  // Finishes the piece at work and drops the rest.
  ~WorkThread();

  // Too much waiting work: answered with an error at once. What was not pruned is so after the next
  // commit, what was not dropped after a day.
  void Submit(Work work);

 private:
  void Loop();
  void Do(const RequestPlan& work);
  void Do(const CommitWork& work);
  void Do(const PruneCheckpoints& work);
  void Do(const DropShards& work);

  const Dependencies dependencies_;
  BoundedQueue<Work> queue_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_WORK_THREAD_H_
