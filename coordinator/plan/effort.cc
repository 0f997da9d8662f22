#include "coordinator/plan/effort.h"

#include <algorithm>

#include "coordinator/plan/schedule_model.h"

namespace longhaul::coordinator {
namespace {

// In steps of a partition, about ten nanoseconds each.
constexpr double kWorkMax = 6e7;
// What a micro-batch costs in a stage that is simulated.
constexpr double kSimulated = 150;
// Making and proving the programs of a number of stages takes as long as so many orders.
constexpr double kOrdersToPrepare = 2;
// Sets of nodes times orders of a set; and what is worth looking at a number of stages at all.
constexpr int kOrdersMax = 36;
constexpr int kOrdersMin = 2;
// Up to this every number of stages is tried.
constexpr int kEveryCountTo = 16;

// Of one order.
double WorkOf(int units, int stages, int64_t micro_batches) {
  const auto simulated =
      std::min<double>(static_cast<double>(micro_batches), 1.5 * SimulatedMicroBatchesMax(stages));
  return static_cast<double>(units) * units + kSimulated * stages * simulated;
}

void SetOrders(int units, int64_t micro_batches, Effort& effort) {
  double work = 0;
  for (const int count : effort.counts) work += WorkOf(units, count, micro_batches);
  effort.orders_max = static_cast<int>(
      std::clamp<double>(kWorkMax / work - kOrdersToPrepare, kOrdersMin, kOrdersMax));
}

}  // namespace

Effort EffortForCounts(int units, int most, int64_t micro_batches) {
  Effort effort;
  for (int part = 8; part > 0; part /= 2) {
    effort.counts.clear();
    for (int count = 1; count < most;
         count += count < kEveryCountTo ? 1 : std::max(1, count / part)) {
      effort.counts.push_back(count);
    }
    effort.counts.push_back(most);
    const auto too_long = [&](int count) {
      return count > 1 && WorkOf(units, count, micro_batches) > kWorkMax / 8;
    };
    effort.counts.erase(std::remove_if(effort.counts.begin(), effort.counts.end(), too_long),
                        effort.counts.end());
    SetOrders(units, micro_batches, effort);
    if (effort.orders_max > 2 * kOrdersMin) break;
  }
  effort.all_counts = static_cast<int>(effort.counts.size()) == most;
  return effort;
}

Effort EffortForCount(int units, int stages, int64_t micro_batches) {
  Effort effort;
  effort.counts = {stages};
  SetOrders(units, micro_batches, effort);
  return effort;
}

}  // namespace longhaul::coordinator
