// A worker as a process: identity, measurement, data plane, control stream and host, put together.
#ifndef LONGHAUL_DAEMON_WORKER_DAEMON_H_
#define LONGHAUL_DAEMON_WORKER_DAEMON_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "daemon/config.h"
#include "daemon/daemon_loop.h"
#include "daemon/log.h"
#include "daemon/rpc/credentials.h"

namespace longhaul::daemon {

// Locks the folder, measures the node, listens for its peers and begins to dial the coordinator,
// which need not be there. `config_path` is read again on a reload. `clock` and `log` must outlive
// the daemon, whose destructor drops the stage at work.
absl::StatusOr<std::unique_ptr<Daemon>> StartWorker(const WorkerConfig& config,
                                                    const std::string& config_path,
                                                    std::unique_ptr<Credentials> credentials,
                                                    Clock& clock, Log& log);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_WORKER_DAEMON_H_
