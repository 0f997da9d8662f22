// The counters of one exchange as its threads write them.
#ifndef LONGHAUL_WORKER_COMM_COUNTERS_H_
#define LONGHAUL_WORKER_COMM_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "worker/comm/exchange.h"

namespace longhaul::worker {

// Thread-safe. The names are those of ExchangeCounters.
struct Counters {
  std::atomic<uint64_t> frames_sent{0}, frames_received{0};
  std::atomic<uint64_t> bytes_sent{0}, bytes_received{0};
  std::atomic<uint64_t> frames_resent{0}, reconnects{0};
  std::atomic<uint64_t> duplicates_dropped{0}, stale_epochs_dropped{0}, corrupt_dropped{0};
  std::atomic<uint64_t> signs_of_life_received{0};

  ExchangeCounters Snapshot() const {
    return {frames_sent,           frames_received,      bytes_sent,
            bytes_received,        frames_resent,        reconnects,
            duplicates_dropped,    stale_epochs_dropped, corrupt_dropped,
            signs_of_life_received};
  }
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_COUNTERS_H_
