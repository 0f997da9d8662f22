// How much of what is possible the planner tries, so that a plan comes within a second or two. By
// the sizes of the request, not by a clock: equal requests give equal plans.
#ifndef LONGHAUL_COORDINATOR_PLAN_EFFORT_H_
#define LONGHAUL_COORDINATOR_PLAN_EFFORT_H_

#include <cstdint>
#include <vector>

namespace longhaul::coordinator {

struct Effort {
  std::vector<int> counts;  // numbers of stages to try, ascending
  int orders_max = 0;       // orders of nodes that fit to partition and simulate, for each number
  bool all_counts = true;   // `counts` has every number that is possible
};

// For 1 to `most` stages: every number up to 16, then steps of about an eighth, wider ones where
// they would take too long. `most` always, unless it alone would take too long.
Effort EffortForCounts(int units, int most, int64_t micro_batches);
// For this number of stages only.
Effort EffortForCount(int units, int stages, int64_t micro_batches);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_EFFORT_H_
