// Messages that must reach the coordinator even if it is away when they are made.
#ifndef LONGHAUL_WORKER_HOST_OUTBOX_H_
#define LONGHAUL_WORKER_HOST_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/ids.h"
#include "worker/host/control_link.h"
#include "worker/host/messages.h"

namespace longhaul::worker {

// Keeps each message until the coordinator has made it durable, and sends everything kept again on
// a new stream. Thread-safe.
class Outbox {
 public:
  // Told how many reports were dropped since the start, at the first and at every thousandth.
  using Dropped = std::function<void(uint64_t)>;

  // At most `reports_max` step reports are kept; beyond that the oldest is dropped and counted.
  Outbox(
      ControlLink& link, size_t reports_max, Dropped dropped = [](uint64_t) {})
      : link_(link), reports_max_(reports_max), dropped_(std::move(dropped)) {}

  // A new stream begins: nothing is sent on it before Resend.
  void Pause();
  // The coordinator accepted this worker: sends everything kept, the step reports first, then the
  // other messages, each oldest first.
  void Resend();

  void AddReport(const StepReport& report);
  // The report of this step and those of earlier steps of its run and epoch are durable.
  void AcknowledgeReport(const std::string& run, const Epoch& epoch, int64_t step);

  // From here until Forget, messages of this run and epoch are taken, and of no other.
  void Begin(const std::string& run, const Epoch& epoch);
  // Kept until Forget, and sent in the order of these calls. Of ShardStored and ShardFailed those
  // of the roundest steps are kept (checkpoint::RoundSteps), which the other stages store too.
  // Dropped when the run and epoch are not those begun: a stage that was told to leave may still be
  // at work, but nobody waits for what it says.
  void Add(const std::string& run, const Epoch& epoch, const ToCoordinator& message);
  // Sent now or never: not kept, and lost while the coordinator is away.
  void Tell(const ToCoordinator& message);
  // Of this epoch of the run and of older ones.
  void Forget(const std::string& run, const Epoch& epoch);

 private:
  void SendLocked(const ToCoordinator& message);
  void BoundCheckpointsLocked();

  ControlLink& link_;
  const size_t reports_max_;
  const Dropped dropped_;
  mutable std::mutex mutex_;
  bool connected_ = false;          // guarded by mutex_, as all below
  std::deque<StepReport> reports_;  // not acknowledged
  std::string run_;                 // begun and not forgotten; empty: none
  Epoch epoch_;
  std::deque<ToCoordinator> kept_;  // of run_ and epoch_
  uint64_t reports_dropped_ = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_OUTBOX_H_
