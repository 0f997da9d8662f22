// Which nodes hold the stages, and in which order: candidates for the planner to partition and
// simulate.
#ifndef LONGHAUL_COORDINATOR_PLAN_PLACEMENT_H_
#define LONGHAUL_COORDINATOR_PLAN_PLACEMENT_H_

#include <vector>

#include "absl/types/span.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/site_order.h"

namespace longhaul::coordinator {

// Nodes are indices into `nodes`.
struct PlacementProblem {
  absl::Span<const NodeProfile> nodes;  // by name
  std::vector<double> model_seconds;    // by node: one micro-batch through the whole model, alone
  std::vector<int> slots;               // by stage; its size is the number of stages
  double micro_batches = 1;
  int replicas = 1;  // that each stage is to have, of its site and numeric class
  const std::vector<std::vector<SiteLeg>>& legs;  // [from][to], by nodes
};

// One set of nodes and the orders worth trying, each with the stages of a site side by side (so
// that no order of the set crosses fewer WAN links) and those of a host side by side within it.
struct Placement {
  double estimated_seconds = 0;  // of a step
  std::vector<std::vector<int>> orders;
};

// The best estimate first. For every set of sites (of more than kExhaustiveSitesMax: the most
// compact of those that grow from one site by the nearest, of a few sizes): the nodes that add most
// speed, and those with most memory; where stages are to have replicas, also those of them that
// leave enough others of their kind free.
std::vector<Placement> Placements(const PlacementProblem& problem);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_PLACEMENT_H_
