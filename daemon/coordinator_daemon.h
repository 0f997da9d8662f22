// The coordinator as a process: its stores, its host and its services, put together.
#ifndef LONGHAUL_DAEMON_COORDINATOR_DAEMON_H_
#define LONGHAUL_DAEMON_COORDINATOR_DAEMON_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "daemon/config.h"
#include "daemon/daemon_loop.h"
#include "daemon/log.h"
#include "daemon/rpc/credentials.h"

namespace longhaul::daemon {

// Locks the folder, restores the state and listens. `config_path` is read again on a reload.
// `clock` and `log` must outlive the daemon, whose destructor closes the streams and the journal.
absl::StatusOr<std::unique_ptr<Daemon>> StartCoordinator(const CoordinatorConfig& config,
                                                         const std::string& config_path,
                                                         std::unique_ptr<Credentials> credentials,
                                                         Clock& clock, Log& log);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_COORDINATOR_DAEMON_H_
