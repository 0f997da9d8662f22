// What the step of a plan with replicas takes, and the memory of its groups.
#ifndef LONGHAUL_COORDINATOR_PLAN_REPLICA_COSTS_H_
#define LONGHAUL_COORDINATOR_PLAN_REPLICA_COSTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "model/graph.h"

namespace longhaul::coordinator {

// A plan of one node for each stage, and the nodes that hold its stages: by stage, the leader
// first.
struct ReplicaLayout {
  const PlanRequest& request;
  const model::Graph& graph;
  const Links& links;
  const Plan& plan;
  std::vector<std::vector<const NodeProfile*>> nodes;
};

// The layout as a plan: shares by speed, slots, memory, and the predicted step. The plan's own
// seconds are scaled by the nodes' rates and by how many of a host's nodes work. The sum over
// replicas comes after the last backward. Reasons are those of the plan.
absl::StatusOr<Plan> PlanOf(const ReplicaLayout& layout);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_REPLICA_COSTS_H_
