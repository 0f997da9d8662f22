// What passed over a worker's data-plane streams, for telemetry.
#ifndef LONGHAUL_DAEMON_RPC_EXCHANGE_COUNTERS_H_
#define LONGHAUL_DAEMON_RPC_EXCHANGE_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace longhaul::daemon {

// Thread-safe; since the start of the process.
struct ExchangeStreamCounters {
  std::atomic<uint64_t> chunks_sent{0}, chunks_received{0};
  std::atomic<uint64_t> bytes_sent{0}, bytes_received{0};  // of chunks
  std::atomic<uint64_t> streams_dialled{0}, dials_failed{0};
  std::atomic<uint64_t> streams_accepted{0}, streams_refused{0};
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_EXCHANGE_COUNTERS_H_
