#include "worker/host/exchange_totals.h"

namespace longhaul::worker {

void ExchangeTotals::Add(const Exchange* exchange) {
  std::lock_guard<std::mutex> lock(mutex_);
  exchanges_.insert(exchange);
}

void ExchangeTotals::Remove(const Exchange* exchange) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (exchanges_.erase(exchange) > 0) ended_ += exchange->counters();
}

ExchangeCounters ExchangeTotals::Sum() const {
  std::lock_guard<std::mutex> lock(mutex_);
  ExchangeCounters sum = ended_;
  for (const Exchange* const exchange : exchanges_) sum += exchange->counters();
  return sum;
}

}  // namespace longhaul::worker
