// The coordinator's control loop: takes events, applies the core, journals, performs the actions.
//
// The daemon's use of it:
//   worker stream opens    -> session = host.NewSession(); Post(NodeConnected{session, ...})
//   worker message         -> Post(StepReported{session, ...}), ...
//   worker stream closes   -> Post(NodeDisconnected{session, ...})
//   host has a message     -> SessionSink::Send(session, message)
//   user's request         -> Request(StartRun{...}, deadline)
//   user looks             -> Snapshot(), metrics(), WaitForChange()
#ifndef LONGHAUL_COORDINATOR_HOST_COORDINATOR_HOST_H_
#define LONGHAUL_COORDINATOR_HOST_COORDINATOR_HOST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/core/core.h"
#include "coordinator/host/checkpoints.h"
#include "coordinator/host/journal.h"
#include "coordinator/host/metrics_store.h"
#include "coordinator/host/session_sink.h"

namespace longhaul::coordinator {

struct CoordinatorHostOptions {
  CoreOptions core;
  absl::Duration heartbeat_every = absl::Seconds(2);  // asked of workers; well below the lease
  absl::Duration tick_every = absl::Milliseconds(500);
  absl::Duration retry_every = absl::Seconds(1);  // of a journal that cannot be written
  size_t events_max = 65536;                      // waiting for the loop
};

// All but `planner` and `log` must outlive the host.
struct CoordinatorHostDependencies {
  Clock* clock = nullptr;
  SessionSink* sink = nullptr;
  Journal* journal = nullptr;  // used by the loop thread only, once the host is made
  MetricsStore* metrics = nullptr;
  Checkpoints* checkpoints = nullptr;
  // MakePlan; called on a thread of its own, one call at a time.
  std::function<absl::StatusOr<Plan>(const PlanRequest&)> planner;
  // The core's decisions and the host's troubles; called from the host's threads.
  std::function<void(bool warning, const std::string& text)> log;
};

// Thread-safe. Owns the core's state and three threads: the loop (events, journal, messages), one
// for the planner and one for commits of manifests, whose answers come back as events.
//
// What workers say is written in batches, as many events as wait: however fast they report, the
// loop keeps up, and a person's request is at most one batch away.
//
// A journal that cannot be written (full disk): an event from a person is undone and the request
// answered with the error; the actions of a batch of other events are held back, in order, and the
// write is tried again until it succeeds. Meanwhile no later event is applied, requests are refused
// with the error, and training goes on without us.
class CoordinatorHost {
 public:
  // Loads the journal, restores the state, starts the threads.
  static absl::StatusOr<std::unique_ptr<CoordinatorHost>> Create(
      CoordinatorHostOptions options, CoordinatorHostDependencies dependencies);
  // Stop, then joins the threads that work.
  virtual ~CoordinatorHost() = default;

  // Finishes the event at work and drops the rest: when it returns, the core hears of nothing any
  // more, neither streams that close nor time, and the journal stays as it is, so that a restart
  // adopts the runs. Requests that wait get Cancelled. Looking goes on. Idempotent; called by one
  // thread.
  virtual void Stop() = 0;

  // A number for a new worker stream, unique in this process, rising.
  virtual uint64_t NewSession() = 0;

  // Enqueues an event; never blocks. False when `events_max` are waiting or the host is ending: the
  // event is dropped, and the caller closes the session's stream (Unavailable, retry), so that the
  // worker sends again what was not acknowledged. A dropped NodeDisconnected is found by the lease.
  virtual bool Post(Event event) = 0;

  // Takes a person's request (its `request` field is set here) before anything that was posted, and
  // waits for the answer: the text for the person, or the refusal. DeadlineExceeded: it may still
  // be carried out.
  using PersonEvent = std::variant<StartRun, StopRun, ResumeRun, DrainNode>;
  virtual absl::StatusOr<std::string> Request(PersonEvent event, absl::Time deadline) = 0;

  // Whether the loop turns, and how much there is. Cheap, however much that is.
  struct Pulse {
    absl::Time turned_at;  // when the loop last took up an event or tried to write what it must
    int nodes_connected = 0;
    int runs_running = 0;
  };
  virtual Pulse pulse() const = 0;

  // A copy of the whole state as it is now.
  virtual State Snapshot() const = 0;

  // A copy of one run and of the nodes of its plan; empty if there is no such run.
  virtual State SnapshotRun(const std::string& run) const = 0;

  // Rises with every change that a person can see: records, and recorded steps.
  virtual uint64_t version() const = 0;
  // Waits until version() differs from `seen`, the deadline has passed, or the host ends. Returns
  // the version.
  virtual uint64_t WaitForChange(uint64_t seen, absl::Time deadline) = 0;

  virtual MetricsStore& metrics() = 0;
  virtual Checkpoints& checkpoints() = 0;

  // Why the journal cannot be written at present; OK when all is well.
  virtual absl::Status health() const = 0;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_COORDINATOR_HOST_H_
