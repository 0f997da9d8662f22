// Nodes of one host share its cores, and some a card: how much slower each is when all of them
// work.
#ifndef LONGHAUL_COORDINATOR_PLAN_HOST_SHARING_H_
#define LONGHAUL_COORDINATOR_PLAN_HOST_SHARING_H_

#include <vector>

#include "absl/types/span.h"
#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// The hosts of some chosen nodes. A node whose host has no name has a host of its own. A card
// counts as a host with one core, which each of its nodes takes whole while it computes; it takes
// nothing of its machine's cores.
struct Hosts {
  std::vector<int> host;             // by chosen node: index into `cores` and `threads`
  std::vector<double> node_threads;  // by chosen node: at most the host's cores, since the node was
                                     // measured alone with as many threads as it has
  std::vector<double> cores;         // by host: the fewest that its chosen nodes state; 0: unknown
  std::vector<double> threads;       // by host: of its chosen nodes together
};
// `chosen` are indices into `nodes`.
Hosts HostsOf(absl::Span<const NodeProfile> nodes, absl::Span<const int> chosen);

// The part of its measured speed that a node keeps while all chosen nodes of its host work:
// cores / threads where there are more threads than cores, else 1.
double ShareOf(const Hosts& hosts, int host);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_HOST_SHARING_H_
