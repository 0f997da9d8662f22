// The door to the exchanges of a worker.
#ifndef LONGHAUL_WORKER_COMM_EXCHANGE_ROUTER_H_
#define LONGHAUL_WORKER_COMM_EXCHANGE_ROUTER_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "worker/comm/exchange.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Accepts streams for all exchanges of a worker: reads the hello, checks its token in constant time
// and its epoch (an older one is refused and counted; for a newer one, or a run that is not here,
// Unavailable says to come again), and hands the stream on. The only door to them. A stream that
// says no hello is bounded in number and, when others come, in time.
class ExchangeRouter : public StreamAcceptor {
 public:
  explicit ExchangeRouter(Clock& clock) : clock_(clock) {}
  absl::Status Serve(ServerStream& stream) override;
  // At most one exchange for a run; registering replaces an older epoch. The exchange must be
  // unregistered, which waits for its streams to end, before it is destroyed.
  void Register(const std::string& run, const Epoch& epoch, const std::string& token,
                StreamServer* exchange);
  void Unregister(const std::string& run, const Epoch& epoch);
  uint64_t stale_epochs_refused() const;

 private:
  struct Entry;

  absl::StatusOr<StreamHello> ReadHello(ServerStream& stream);
  // The entry that the hello is for, with the stream among its streams.
  absl::StatusOr<std::shared_ptr<Entry>> Enter(const StreamHello& hello, ServerStream& stream);

  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Entry>> entries_;       // guarded by mutex_
  std::map<ServerStream*, absl::Time> before_hello_;  // guarded by mutex_; since when
  uint64_t stale_epochs_refused_ = 0;                 // guarded by mutex_
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_EXCHANGE_ROUTER_H_
