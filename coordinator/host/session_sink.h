// Where messages to workers go, with everything filled in: daemon/rpc only converts them.
#ifndef LONGHAUL_COORDINATOR_HOST_SESSION_SINK_H_
#define LONGHAUL_COORDINATOR_HOST_SESSION_SINK_H_

#include <cstdint>

#include "control/messages.h"

namespace longhaul::coordinator {

// Implemented by daemon/rpc.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Called from the host's loop thread only; never blocks, never calls the host back. Messages of a
  // session keep their order. A session that is gone swallows them. Refused is the last one of its
  // session; the stream is closed after it.
  virtual void Send(uint64_t session, control::ToWorker message) = 0;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_SESSION_SINK_H_
