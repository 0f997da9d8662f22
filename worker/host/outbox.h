// Messages that must reach the coordinator even if it is away when they are made.
#ifndef LONGHAUL_WORKER_HOST_OUTBOX_H_
#define LONGHAUL_WORKER_HOST_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "base/ids.h"
#include "worker/host/messages.h"
#include "worker/host/remote.h"

namespace longhaul::worker {

// Keeps each message until the coordinator has made it durable, and sends everything kept again on
// a new stream. Thread-safe.
class Outbox {
 public:
  // At most `reports_max` step reports are kept; beyond that the oldest is dropped and counted.
  Outbox(ControlLink& link, size_t reports_max) : link_(link), reports_max_(reports_max) {}

  // A new stream begins: nothing is sent on it before Resend.
  void Pause();
  // The coordinator accepted this worker: sends everything kept, oldest first.
  void Resend();

  void AddReport(const StepReport& report);
  void AcknowledgeReport(const std::string& run, int64_t step);
  // Kept until Forget of its run and epoch. Messages of a stage arrive in the order of these calls.
  void Add(const Epoch& epoch, const std::string& run, const ToCoordinator& message);
  void Forget(const std::string& run, const Epoch& epoch);

  uint64_t reports_dropped() const;

 private:
  struct Kept {
    std::string run;
    Epoch epoch;
    ToCoordinator message;
  };
  void SendLocked(const ToCoordinator& message);

  ControlLink& link_;
  const size_t reports_max_;
  mutable std::mutex mutex_;
  bool connected_ = false;          // guarded by mutex_, as all below
  std::deque<StepReport> reports_;  // not acknowledged
  std::deque<Kept> kept_;
  uint64_t reports_dropped_ = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_OUTBOX_H_
