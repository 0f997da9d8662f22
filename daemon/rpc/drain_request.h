// A worker's wish to leave in order.
#ifndef LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_
#define LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_

#include <grpcpp/client_context.h>

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/rpc/credentials.h"

namespace longhaul::daemon {

// Asks the coordinator to drain `node`, as `longhaul node drain` does. Ask is for one thread at a
// time, Cancel for any. `credentials` outlives it.
class DrainRequest {
 public:
  DrainRequest(std::string coordinator, std::string coordinator_name,
               const Credentials& credentials, std::string node);

  // Waits for the answer for at most `wait_max`.
  absl::Status Ask(absl::Duration wait_max);
  // The present and every future Ask returns Cancelled soon.
  void Cancel();

 private:
  const std::string coordinator_;
  const std::string coordinator_name_;
  const Credentials& credentials_;
  const std::string node_;
  std::mutex mutex_;
  grpc::ClientContext* in_flight_ = nullptr;  // guarded by mutex_
  bool cancelled_ = false;                    // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_
