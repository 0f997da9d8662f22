// Further nodes for the stages of a plan: several replicas of a stage, in its site.
#ifndef LONGHAUL_COORDINATOR_PLAN_REPLICAS_H_
#define LONGHAUL_COORDINATOR_PLAN_REPLICAS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "model/graph.h"

namespace longhaul::coordinator {

// Micro-batches for replicas that need `seconds` for one each, at least one each, their sum
// `micro_batches`: the shares whose slowest replica is done first. There are enough for all.
std::vector<int> SharesBySpeed(absl::Span<const double> seconds, int micro_batches);

// FailedPrecondition when so many stages with the replicas that the run asks for are more device
// groups than a plan may have.
absl::Status CheckGroups(const run::RunSpec& spec, int stages);

// Here and below `request` has only nodes that SelectNodes chose.
// Whether the nodes that the plan leaves free give every stage as many replicas in its site as
// pipeline.replicas says.
bool HasRoomForReplicas(const PlanRequest& request, const Plan& plan);

// The plan, which has one node for each stage, with replicas as the run's pipeline.replicas says:
// a number of them, or as many as make the predicted step shorter. FailedPrecondition with numbers
// and remedy when there are too few nodes, in the right sites and with a trusted network, or when
// memory does not suffice.
absl::StatusOr<Plan> AddReplicas(const PlanRequest& request, const model::Graph& graph,
                                 const Plan& plan);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_REPLICAS_H_
