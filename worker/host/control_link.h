// What the worker's host needs from the coordinator for messages.
#ifndef LONGHAUL_WORKER_HOST_CONTROL_LINK_H_
#define LONGHAUL_WORKER_HOST_CONTROL_LINK_H_

#include "worker/host/messages.h"

namespace longhaul::worker {

// Where the host's messages go. Thread-safe; never blocks. False: not connected or the queue is
// full; the host then keeps what must not be lost and sends it again after the next Accepted.
class ControlLink {
 public:
  virtual ~ControlLink() = default;
  virtual bool Send(const ToCoordinator& message) = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_CONTROL_LINK_H_
