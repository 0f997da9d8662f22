// One placement partitioned, simulated and measured: what the planner compares.
#ifndef LONGHAUL_COORDINATOR_PLAN_CANDIDATE_H_
#define LONGHAUL_COORDINATOR_PLAN_CANDIDATE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/job.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/schedule_model.h"
#include "coordinator/plan/site_order.h"

namespace longhaul::coordinator {

struct Candidate {
  std::vector<int> nodes;                  // by stage: index into the job's eligible nodes
  Plan plan;                               // without reasons
  std::vector<double> stage_busy_seconds;  // by stage: computing, in one step
  std::vector<double> link_busy_seconds;   // by link: sending one way, the busier one, in one step
};

// Sites that the candidate's stages are in, in pipeline order.
std::vector<std::string> SitesOf(const Job& job, const Candidate& candidate);

// What crossing from one node to the other costs a micro-batch, with the codec that the link would
// get. InvalidArgument for an unknown codec.
absl::StatusOr<SiteLeg> LegBetween(const Job& job, const NodeProfile& from, const NodeProfile& to);

// The best partition over the nodes in this order, its codecs and its predicted step; nothing where
// no partition fits the nodes' memory.
// `cutting` is one of the job's.
absl::StatusOr<std::optional<Candidate>> Evaluate(const Job& job, Cutting& cutting,
                                                  const ScheduleModel& schedule,
                                                  const std::vector<int>& nodes);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CANDIDATE_H_
