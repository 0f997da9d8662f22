// The coordinator's figures for Prometheus.
#ifndef LONGHAUL_DAEMON_COORDINATOR_FIGURES_H_
#define LONGHAUL_DAEMON_COORDINATOR_FIGURES_H_

#include <vector>

#include "coordinator/host/coordinator_host.h"
#include "daemon/rpc/membership_server.h"
#include "daemon/rpc/session_table.h"
#include "daemon/telemetry.h"

namespace longhaul::daemon {

// Nodes and runs by state; step, loss and rate of every run; streams refused and cut off.
std::vector<Figure> CoordinatorFigures(coordinator::CoordinatorHost& host,
                                       const MembershipServer& membership,
                                       const SessionTable& sessions);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_COORDINATOR_FIGURES_H_
