// Where the planner considers cutting a model.
#ifndef LONGHAUL_COORDINATOR_PLAN_CUTS_H_
#define LONGHAUL_COORDINATOR_PLAN_CUTS_H_

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace longhaul::coordinator {

// fp32 bytes of one micro-batch over the cut in front of each operator, and 0 at the ends; an edge
// counts a whole number of 64 bytes.
std::vector<double> CutBytes(const model::Graph& graph, int64_t micro_batch);

// The cut points whose bytes are locally the fewest: between neighbours that carry more, the first
// of equal ones. Of a transformer, where only the residual stream crosses. Of a large model only
// those between blocks.
std::vector<int> CheapestCuts(const model::Graph& graph, const std::vector<double>& cut_bytes);

// Every cut point; none of a model so large that the choice among them would take too long.
std::vector<int> EveryCut(const model::Graph& graph);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CUTS_H_
