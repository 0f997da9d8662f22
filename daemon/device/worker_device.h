// The one device that a worker computes on: processor cores, or a card.
#ifndef LONGHAUL_DAEMON_DEVICE_WORKER_DEVICE_H_
#define LONGHAUL_DAEMON_DEVICE_WORKER_DEVICE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/device_facts.h"
#include "control/device.h"
#include "daemon/config.h"
#include "daemon/device/card_watch.h"
#include "daemon/device/device_claim.h"
#include "daemon/host_resources.h"
#include "daemon/log.h"
#include "worker/host/messages.h"

namespace longhaul::daemon {

// What a worker may plan with: what is free, less CardMemoryMargin, at most `cap_bytes` (0: no
// cap). ResourceExhausted, with the numbers, if that is too little for any stage. `device` is for
// the message ("cuda:0").
absl::StatusOr<int64_t> UsableCardMemory(absl::string_view device,
                                         const compute::CudaMemory& memory, int64_t cap_bytes);

// Thread-safe once it is open. A card is claimed for the object's life, watched, and refused for
// good once it has failed.
class WorkerDevice {
 public:
  // Opens what the configuration names and measures it, within about a second. Every error says
  // what to do, and nothing stays taken. `clock` and `log` must outlive it.
  static absl::StatusOr<std::unique_ptr<WorkerDevice>> Open(const WorkerConfig& config,
                                                            const HostResources& host, Clock& clock,
                                                            const Log& log);

  // Sets what is known of the device.
  void Describe(worker::NodeFacts& facts) const;
  // Of the backend; 1 for cards.
  int threads() const { return facts_.threads; }

  // One at a time. A card that has failed is not opened again.
  absl::StatusOr<std::unique_ptr<compute::Backend>> MakeBackend();

  // What the card said of itself since the last call; none: nothing new, or no card.
  std::optional<control::CardReadings> TakeReadings();

  // The device is of no more use to this process, for the first reason told.
  void Fail(const absl::Status& reason);
  // OK, or why it is of no more use.
  absl::Status health() const;

 private:
  WorkerDevice(const WorkerConfig& config, Clock& clock)
      : cuda_(config.cuda_device), clock_(clock) {}
  absl::Status OpenProcessor(const WorkerConfig& config, const HostResources& host);
  absl::Status OpenCard(const WorkerConfig& config, const Log& log);
  absl::Status WatchCard(const Log& log);

  const std::optional<int> cuda_;
  Clock& clock_;
  worker::NodeFacts facts_;  // of the device alone
  std::optional<DeviceClaim> claim_;
  std::unique_ptr<CardWatch> watch_;
  mutable std::mutex mutex_;
  absl::Status failed_;  // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_DEVICE_WORKER_DEVICE_H_
