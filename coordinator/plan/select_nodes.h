// Which nodes may take part in a plan.
#ifndef LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_
#define LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// Nodes that may be in one plan, by name, whose measurements make sense; and why others are left
// out, a sentence each.
struct EligibleNodes {
  std::vector<NodeProfile> nodes;
  std::string numeric_class;  // of all of them
  std::vector<std::string> excluded;
  bool all_classes = false;  // they may have any numeric class
};

// Of so many numeric classes that have enough nodes a plan is made: of the one with the most nodes
// and those with the most arithmetic.
inline constexpr int kClassesTriedMax = 4;

// The choices there are, never none: those of the request's class; without one those of each class,
// the most nodes first, and before them all nodes if the run may mix classes. FailedPrecondition
// when `stages` (0: any number) needs more nodes than there are, with the numbers and the remedy.
// InvalidArgument when two nodes have one name.
absl::StatusOr<std::vector<EligibleNodes>> SelectNodes(const PlanRequest& request, int stages);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_
