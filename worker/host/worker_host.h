// The worker's control loop: follows the coordinator's messages, owns the stage that is being
// trained, and survives the loss of the coordinator.
#ifndef LONGHAUL_WORKER_HOST_WORKER_HOST_H_
#define LONGHAUL_WORKER_HOST_WORKER_HOST_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "worker/comm/device_rendezvous.h"
#include "worker/comm/exchange.h"
#include "worker/comm/exchange_router.h"
#include "worker/host/control_link.h"
#include "worker/host/messages.h"
#include "worker/host/remote.h"

namespace longhaul::worker {

struct WorkerHostOptions {
  NodeFacts facts;
  std::string folder;  // data sets and shards of this node
  // Of a wait for a peer of which nothing is heard (ExchangeOptions::silence_max). None: the lease
  // that the coordinator grants, so that a lost link is shown as fast as a lost node.
  std::optional<absl::Duration> peer_silence_max;
  absl::Duration transfer_max = absl::Minutes(10);  // of one fetch or upload of bulk data
  int connections = 1;                              // parallel streams to each peer
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct WorkerHostDependencies {
  Clock* clock = nullptr;
  ControlLink* control = nullptr;
  RemoteStore* remote = nullptr;
  Transport* transport = nullptr;
  ExchangeRouter* router = nullptr;
  // The device of this node, made anew for each stage and gone before the next is made.
  std::function<absl::StatusOr<std::unique_ptr<compute::Backend>>()> make_backend;
  DeviceRendezvousFactory device_rendezvous;  // of replicas on cards; null: their hosts sum
  // The device is of no more use to this process, for this reason; the run has been told. Called
  // from the host's threads; thread-safe. Empty: nobody wants to know.
  std::function<void(const absl::Status&)> on_device_lost;
  // Called from the host's threads; thread-safe.
  absl::AnyInvocable<void(LogLevel, const std::string&) const> log;
};

// Thread-safe. One thread runs the stage, started for each assignment.
class WorkerHost {
 public:
  WorkerHost(WorkerHostOptions options, WorkerHostDependencies dependencies);
  ~WorkerHost();  // aborts the stage and joins

  // What to say first on a new control stream: who this is, and the run it is training.
  Register MakeRegister() const;
  // Every message from the coordinator, in order. After Accepted, what was not acknowledged is sent
  // again.
  void OnMessage(const ToWorker& message);

  // The stage that is trained, if there is one, fails for this reason, which the run is told.
  void FailStage(const absl::Status& reason);

  // One line for people ("training run first stage 1 at step 17", "idle").
  std::string Describe() const;

  // True while a stage is assigned.
  bool busy() const;

  // Of all stages since the start.
  ExchangeCounters exchange_counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_WORKER_HOST_H_
