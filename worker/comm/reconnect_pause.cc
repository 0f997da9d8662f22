#include "worker/comm/reconnect_pause.h"

#include <cstdint>

#include "base/backoff.h"
#include "base/rng.h"

namespace longhaul::worker {

absl::Duration ReconnectPause(const ExchangeOptions& exchange, const LinkOptions& link,
                              int connection, int failures) {
  const uint64_t seed = exchange.jitter_seed;
  const uint32_t draw =
      Philox4x32({static_cast<uint32_t>(exchange.group), static_cast<uint32_t>(link.peer_group),
                  static_cast<uint32_t>(connection), static_cast<uint32_t>(failures)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[0];
  return BackoffPause(exchange.reconnect_min, exchange.reconnect_max, failures, draw);
}

}  // namespace longhaul::worker
