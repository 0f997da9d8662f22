// Which changes of a configuration need a restart.
#ifndef LONGHAUL_DAEMON_RELOAD_H_
#define LONGHAUL_DAEMON_RELOAD_H_

#include <string>
#include <vector>

#include "daemon/config.h"

namespace longhaul::daemon {

// Keys whose values differ and that a running daemon cannot take up. The log level can be, and so
// can the contents of the certificate files.
std::vector<std::string> NeedRestart(const CoordinatorConfig& running,
                                     const CoordinatorConfig& wanted);
std::vector<std::string> NeedRestart(const WorkerConfig& running, const WorkerConfig& wanted);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RELOAD_H_
