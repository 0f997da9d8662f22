// Sets of nodes that could hold a pipeline's stages.
#ifndef LONGHAUL_COORDINATOR_PLAN_NODE_SETS_H_
#define LONGHAUL_COORDINATOR_PLAN_NODE_SETS_H_

#include <vector>

#include "absl/types/span.h"
#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// Of the nodes `from` (indices into `nodes`), `count` with at least one of each site among `from`;
// `from` must have as many, and `count` must be at least the number of sites.

// Each next node adds the most speed to those before it, where nodes of a crowded host add little;
// ties: more memory, then the lower index. `model_seconds` is by node.
std::vector<int> FastestNodes(absl::Span<const NodeProfile> nodes,
                              absl::Span<const double> model_seconds, const std::vector<int>& from,
                              int count);

// The nodes with most memory; ties: the lower index.
std::vector<int> RoomiestNodes(absl::Span<const NodeProfile> nodes, const std::vector<int>& from,
                               int count);

// Models a second that `chosen` get through together, sharing their hosts' cores, if work were
// divided as finely as one likes.
double CombinedRate(absl::Span<const NodeProfile> nodes, absl::Span<const double> model_seconds,
                    absl::Span<const int> chosen);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_NODE_SETS_H_
