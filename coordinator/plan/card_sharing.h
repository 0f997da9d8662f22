// Workers of one card have its memory together.
#ifndef LONGHAUL_COORDINATOR_PLAN_CARD_SHARING_H_
#define LONGHAUL_COORDINATOR_PLAN_CARD_SHARING_H_

#include <vector>

#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// Where several nodes share a card of known size and state more memory than it has, less one margin
// for each of them (base/card_memory.h), each gets of that what its memory is of the sum. `nodes`
// should have all workers of a card, also those that are busy. Nodes that share already stay as
// they are.
void ShareCardMemory(std::vector<NodeProfile>& nodes);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CARD_SHARING_H_
