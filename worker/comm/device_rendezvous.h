// How the replicas of a stage come to sum in the memory of their devices; NCCL is one way to do it.
#ifndef LONGHAUL_WORKER_COMM_DEVICE_RENDEZVOUS_H_
#define LONGHAUL_WORKER_COMM_DEVICE_RENDEZVOUS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "worker/comm/collective.h"

namespace longhaul::worker {

// What a replica tells the others of its device before they have met.
struct DeviceOffer {
  std::string library;  // with its version, "nccl 2.28.9": replicas meet over the same one only
  std::string card;     // the physical one, by a name that no other of the site has
  std::string id;       // of the group that is to meet, from rank 0; empty from the others
  bool operator==(const DeviceOffer&) const = default;
};

struct DeviceRendezvousOptions {
  int rank = 0;
  std::vector<std::string> names;  // of each rank's replica, for messages
  absl::Duration connect_max;      // of meeting all
};

// A replica that offers to sum on its device.
class DeviceRendezvous {
 public:
  virtual ~DeviceRendezvous() = default;

  virtual const DeviceOffer& offer() const = 0;

  // Once, when the offers of all fit together (WhyNotOnDevices). `id`: from rank 0's offer.
  // Unavailable or DeadlineExceeded if not all come. The collective's on_device() holds; its memory
  // is that of the backend that this was made for, which must outlive it.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Connect(const std::string& id) = 0;

  // Connect returns `reason` soon; thread-safe.
  virtual void Cancel(const absl::Status& reason) = 0;
};

// An error says why this process cannot sum on the backend's device: its replicas then sum on their
// hosts. What is made must not outlive backend and clock. Null: no device of this build can.
using DeviceRendezvousFactory = std::function<absl::StatusOr<std::unique_ptr<DeviceRendezvous>>(
    const DeviceRendezvousOptions&, compute::Backend&, Clock&)>;

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_DEVICE_RENDEZVOUS_H_
