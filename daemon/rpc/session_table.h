// The outgoing queue of every worker's control stream.
#ifndef LONGHAUL_DAEMON_RPC_SESSION_TABLE_H_
#define LONGHAUL_DAEMON_RPC_SESSION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "coordinator/host/session_sink.h"

namespace longhaul::daemon {

// Thread-safe. Overflow rule: the queue is closed, its stream ends, and the worker re-attaches; a
// worker that does not read for so long has lost its lease anyway.
class SessionTable : public coordinator::SessionSink {
 public:
  using Queue = BoundedQueue<control::ToWorker>;

  SessionTable(Clock& clock, size_t messages_max) : clock_(clock), messages_max_(messages_max) {}

  // Makes the queue of a new session.
  std::shared_ptr<Queue> Open(uint64_t session);
  // Closes and forgets it.
  void Close(uint64_t session);
  void Send(uint64_t session, control::ToWorker message) override;

  // Sessions that ended because their queue was full.
  uint64_t overflows() const;

 private:
  Clock& clock_;
  const size_t messages_max_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Queue>> queues_;  // guarded by mutex_
  uint64_t overflows_ = 0;                             // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_SESSION_TABLE_H_
