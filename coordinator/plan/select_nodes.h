// Which nodes may take part in a plan.
#ifndef LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_
#define LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// The nodes of one numeric class, by name, whose measurements make sense; and why the others are
// left out, a sentence each.
struct EligibleNodes {
  std::vector<NodeProfile> nodes;
  std::string numeric_class;
  std::vector<std::string> excluded;
};

// The class is the request's, or the one that most nodes have. FailedPrecondition when `stages` (0:
// any number) needs more nodes than there are, with the numbers and the remedy. InvalidArgument
// when two nodes have one name.
absl::StatusOr<EligibleNodes> SelectNodes(const PlanRequest& request, int stages);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_SELECT_NODES_H_
