// Why a plan is as it is, in sentences with numbers.
#ifndef LONGHAUL_COORDINATOR_PLAN_REASONS_H_
#define LONGHAUL_COORDINATOR_PLAN_REASONS_H_

#include <string>
#include <vector>

#include "coordinator/plan/candidate.h"
#include "coordinator/plan/job.h"

namespace longhaul::coordinator {

// What the planner tried.
struct Decision {
  std::vector<Candidate> candidates;    // in the order of trying
  size_t chosen = 0;                    // index into `candidates`
  std::vector<int> counts_not_fitting;  // numbers of stages that fit into no nodes' memory
  bool stages_fixed = false;            // the user asked for this number of stages
  bool tried_all = true;                // false: the request was too large for that
};

// Most important first: the number of stages, what limits, the placement and what the next best one
// would give, codecs, shared cores, nodes left out, and what was not tried.
std::vector<std::string> Reasons(const Job& job, const Decision& decision);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_REASONS_H_
