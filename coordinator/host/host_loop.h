// Private to coordinator_host.cc: what the loop thread does with events and actions.
#ifndef LONGHAUL_COORDINATOR_HOST_HOST_LOOP_H_
#define LONGHAUL_COORDINATOR_HOST_HOST_LOOP_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/bounded_queue.h"
#include "coordinator/host/coordinator_host.h"
#include "coordinator/host/request_table.h"
#include "coordinator/host/work_thread.h"

namespace longhaul::coordinator {

// Requests that wait for the loop; more are refused.
inline constexpr size_t kPeopleMax = 1024;

class HostLoop : public CoordinatorHost {
 public:
  HostLoop(CoordinatorHostOptions options, CoordinatorHostDependencies dependencies, State state);
  ~HostLoop() override;

  void Stop() override;
  uint64_t NewSession() override { return ++newest_session_; }
  bool Post(Event event) override { return events_.TryPush(std::move(event)); }
  absl::StatusOr<std::string> Request(PersonEvent event, absl::Time deadline) override;
  Pulse pulse() const override;
  State Snapshot() const override;
  State SnapshotRun(const std::string& name) const override;
  uint64_t version() const override;
  uint64_t WaitForChange(uint64_t seen, absl::Time deadline) override;
  MetricsStore& metrics() override { return *dependencies_.metrics; }
  Checkpoints& checkpoints() override { return *dependencies_.checkpoints; }
  absl::Status health() const override;

 private:
  struct Perform;
  // A message that was filled in when its action was decided: records may have changed since.
  struct Message {
    uint64_t session = 0;
    control::ToWorker message;
  };
  using Effect = std::variant<Action, Message, CommitWork>;
  // What events ask for that are not durable yet.
  struct Batch {
    std::vector<Effect> effects;        // in order
    std::set<std::string> runs, nodes;  // whose records changed
    std::vector<control::StepReport> reports;
    std::vector<AcknowledgeStep> acknowledgements;  // one of a session and epoch, the newest

    bool empty() const {
      return effects.empty() && runs.empty() && nodes.empty() && reports.empty() &&
             acknowledgements.empty();
    }
  };

  void Loop();
  // Answers first, then people, then what workers say: a person does not wait behind reports.
  std::optional<Event> NextEvent();
  // An event whose failure nobody is told: its actions join the batch.
  void Handle(const Event& event);
  // An event that answers a request: its actions are performed, or it is undone, at once.
  void HandleAlone(const Event& event);
  // Applies the event; what it asks for is added to `batch`.
  void Apply(const Event& event, Batch& batch);
  void Add(Action action, Batch& batch);
  // Writes the batch, all records in one transaction and all reports in another, then performs it.
  void Flush();
  // Anew until it succeeds, unless `once`.
  absl::Status Persist(const Batch& batch, bool once);
  // Puts the state back and answers the person who asked.
  void Undo(const Event& event, State before, const absl::Status& error);
  // Repeats `write` until it succeeds or the host ends; returns the last result.
  absl::Status Persevere(const std::function<absl::Status()>& write);
  void SetHealth(const absl::Status& status);
  void NoteTurn();
  void Changed();
  void AddAnswer(Event event);
  // False when too many wait.
  bool AddPerson(Event event);

  const CoordinatorHostOptions options_;
  const CoordinatorHostDependencies dependencies_;
  Clock& clock_;
  std::atomic<uint64_t> newest_session_ = 0;
  RequestTable requests_;
  BoundedQueue<Event> events_;

  mutable std::mutex state_mutex_;
  State state_;  // written by the loop thread under state_mutex_, read by it without

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  uint64_t version_ = 1;
  bool ending_ = false;
  absl::Status health_;
  absl::Time turned_at_;
  std::deque<Event> answers_;  // of the work thread; as many as there was work
  std::deque<Event> people_;   // at most kPeopleMax

  // The loop thread's own.
  absl::Time next_tick_;
  Batch batch_;

  std::unique_ptr<WorkThread> planning_;
  std::unique_ptr<WorkThread> committing_;  // a checkpoint does not wait for a plan
  std::thread thread_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_HOST_LOOP_H_
