// The counters of all exchanges that this worker has had.
#ifndef LONGHAUL_WORKER_HOST_EXCHANGE_TOTALS_H_
#define LONGHAUL_WORKER_HOST_EXCHANGE_TOTALS_H_

#include <mutex>
#include <set>

#include "worker/comm/exchange.h"

namespace longhaul::worker {

// Thread-safe. Exchanges come and go with their stages; the sums never fall.
class ExchangeTotals {
 public:
  // `exchange` lives until it is removed.
  void Add(const Exchange* exchange);
  // What it has counted so far stays in the sums; what it counts from here on does not count.
  void Remove(const Exchange* exchange);
  ExchangeCounters Sum() const;

 private:
  mutable std::mutex mutex_;
  ExchangeCounters ended_;               // guarded by mutex_
  std::set<const Exchange*> exchanges_;  // guarded by mutex_
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_EXCHANGE_TOTALS_H_
