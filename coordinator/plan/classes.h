// Which numeric class a run gets, and what is said of runs that mix several.
#ifndef LONGHAUL_COORDINATOR_PLAN_CLASSES_H_
#define LONGHAUL_COORDINATOR_PLAN_CLASSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/select_nodes.h"

namespace longhaul::coordinator {

// What came of planning with one choice of nodes.
struct ClassPlan {
  EligibleNodes eligible;
  absl::StatusOr<Plan> plan;
};

// The fastest plan, the first of equal ones (of several classes only if that is clearly faster),
// with the numeric classes of its nodes; its reasons also say which nodes of `request` their class
// leaves out, and what the best plan with those would have been, or that the bits depend on the
// placement. The first choice's error if there is none. `choices` has at least one element.
absl::StatusOr<Plan> FastestClass(const PlanRequest& request,
                                  const std::vector<ClassPlan>& choices);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CLASSES_H_
