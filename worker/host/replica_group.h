// A device group's part in the collective of its stage's replicas, from before they have met.
#ifndef LONGHAUL_WORKER_HOST_REPLICA_GROUP_H_
#define LONGHAUL_WORKER_HOST_REPLICA_GROUP_H_

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "worker/comm/collective.h"
#include "worker/comm/device_rendezvous.h"
#include "worker/comm/exchange.h"
#include "worker/comm/gloo_mesh.h"
#include "worker/comm/replica_offer.h"
#include "worker/host/assignment.h"
#include "worker/host/messages.h"

namespace longhaul::worker {

// Listen, Connect, collective, Watch, LeaveBackend and EndWatch are for the job's thread; Cancel is
// for any. With one replica nothing happens.
class ReplicaGroup {
 public:
  ReplicaGroup() = default;
  // Whose replicas have met.
  explicit ReplicaGroup(std::unique_ptr<Collective> collective)
      : collective_(std::move(collective)) {}

  // Listens on the host of this node's data address. `backend`: whose memory is summed, by
  // `on_device` where the run does not want the ranks' order. Both, and the clock, outlive the
  // group, but for LeaveBackend.
  absl::Status Listen(const StagePlan& plan, const Assignment& assignment,
                      compute::Backend& backend, const DeviceRendezvousFactory& on_device,
                      Clock& clock);
  // For the other replicas; empty if there are none.
  const std::string& rendezvous() const { return rendezvous_; }
  // `rendezvous`: of each replica of the stage, its own included. All sum on their devices, or all
  // on their hosts, as WhyNotOnDevices says.
  absl::Status Connect(const std::vector<std::string>& rendezvous);
  // Takes memory of the backend. Null: there is one replica.
  Collective* collective() { return staged_ != nullptr ? staged_.get() : collective_.get(); }
  // For people, of a device: "sums gradients over nccl 2.28.9", or over the hosts and why. Empty
  // before Connect and on processors.
  const std::string& how() const { return how_; }

  // Before the backend goes: the collective is not used any more, but the peers may still need it.
  void LeaveBackend();

  // From here on a replica of which the exchange hears nothing ends the collective's waits: its own
  // connections do not notice a link that is cut while both ends are alive.
  void Watch(const StagePlan& plan, Exchange& exchange);
  // After the exchange was cancelled, and before it goes.
  void EndWatch();

  // Present and future waits end soon, those of the collective with `reason`.
  void Cancel(const absl::Status& reason);

 private:
  absl::Status ConnectOnHost(const std::vector<ReplicaOffer>& offers);
  absl::Status Keep(absl::StatusOr<std::unique_ptr<Collective>> collective);

  compute::Backend* backend_ = nullptr;
  Clock* clock_ = nullptr;
  std::vector<std::string> names_;  // of the replicas
  std::string rendezvous_, how_;
  std::string no_device_;  // why this replica does not offer to sum on its device

  mutable std::mutex mutex_;
  absl::Status cancelled_;                       // guarded by mutex_
  std::unique_ptr<GlooRendezvous> listening_;    // set under mutex_
  std::unique_ptr<DeviceRendezvous> on_device_;  // set under mutex_
  std::unique_ptr<Collective> collective_;       // set under mutex_
  std::unique_ptr<Collective> staged_;           // over collective_, for a device; or null
  std::vector<std::thread> watching_;            // one for each other replica
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_REPLICA_GROUP_H_
