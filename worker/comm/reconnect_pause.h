// How long a connection that broke waits before it is dialled again.
#ifndef LONGHAUL_WORKER_COMM_RECONNECT_PAUSE_H_
#define LONGHAUL_WORKER_COMM_RECONNECT_PAUSE_H_

#include "absl/time/time.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

// After `failures` attempts in a row: doubles from reconnect_min to reconnect_max; half of it is
// fixed and half drawn, by jitter_seed, the two device groups, `connection` and `failures`, so that
// no two connections of a site come back in step.
absl::Duration ReconnectPause(const ExchangeOptions& exchange, const LinkOptions& link,
                              int connection, int failures);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_RECONNECT_PAUSE_H_
