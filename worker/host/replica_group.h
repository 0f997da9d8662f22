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
#include "worker/comm/collective.h"
#include "worker/comm/exchange.h"
#include "worker/comm/gloo_mesh.h"
#include "worker/host/assignment.h"
#include "worker/host/messages.h"

namespace longhaul::worker {

// Listen, Connect, collective, Watch and EndWatch are for the job's thread, in this order; Cancel
// is for any. With one replica nothing happens.
class ReplicaGroup {
 public:
  ReplicaGroup() = default;
  // Whose replicas have met.
  explicit ReplicaGroup(std::unique_ptr<Collective> collective)
      : collective_(std::move(collective)) {}

  // Listens on the host of this node's data address.
  absl::Status Listen(const StagePlan& plan, const Assignment& assignment, Clock& clock);
  // For the other replicas; empty if there are none.
  std::string rendezvous() const;
  // `rendezvous`: of each replica of the stage, its own included.
  absl::Status Connect(const std::vector<std::string>& rendezvous);
  Collective* collective() { return collective_.get(); }  // null: there is one replica

  // From here on a replica of which the exchange hears nothing ends the collective's waits: its own
  // connections do not notice a link that is cut while both ends are alive.
  void Watch(const StagePlan& plan, Exchange& exchange);
  // After the exchange was cancelled, and before it goes.
  void EndWatch();

  // Present and future waits end soon, those of the collective with `reason`.
  void Cancel(const absl::Status& reason);

 private:
  mutable std::mutex mutex_;
  absl::Status cancelled_;                     // guarded by mutex_
  std::unique_ptr<GlooRendezvous> listening_;  // set under mutex_
  std::unique_ptr<Collective> collective_;     // set under mutex_
  std::vector<std::thread> watching_;          // one for each other replica
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_REPLICA_GROUP_H_
