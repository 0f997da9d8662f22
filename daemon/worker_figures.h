// A worker's figures for Prometheus.
#ifndef LONGHAUL_DAEMON_WORKER_FIGURES_H_
#define LONGHAUL_DAEMON_WORKER_FIGURES_H_

#include <cstdint>
#include <vector>

#include "daemon/rpc/exchange_counters.h"
#include "daemon/telemetry.h"
#include "worker/comm/exchange.h"

namespace longhaul::daemon {

struct WorkerCondition {
  bool member = false;                // the coordinator has accepted it
  bool busy = false;                  // a stage is assigned
  uint64_t stale_epochs_refused = 0;  // streams, before they reached a stage
  worker::ExchangeCounters exchange;  // of all stages since the start
};

std::vector<Figure> WorkerFigures(const WorkerCondition& condition,
                                  const ExchangeStreamCounters& counters);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_WORKER_FIGURES_H_
