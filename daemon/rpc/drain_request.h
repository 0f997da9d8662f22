// A worker's wish to leave in order.
#ifndef LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_
#define LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/rpc/credentials.h"

namespace longhaul::daemon {

// Asks the coordinator to drain `node`, as `longhaul node drain` does. Waits for the answer for at
// most `wait_max`.
absl::Status RequestDrain(const std::string& coordinator, const std::string& coordinator_name,
                          const Credentials& credentials, const std::string& node,
                          absl::Duration wait_max);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_DRAIN_REQUEST_H_
