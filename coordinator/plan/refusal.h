// Why a job cannot be planned.
#ifndef LONGHAUL_COORDINATOR_PLAN_REFUSAL_H_
#define LONGHAUL_COORDINATOR_PLAN_REFUSAL_H_

#include <vector>

#include "absl/status/status.h"
#include "coordinator/plan/job.h"
#include "coordinator/plan/schedule_model.h"

namespace longhaul::coordinator {

// FailedPrecondition that shows the partition over one of `orders` that comes nearest to fitting:
// of every stage what it needs, what its node has, and its largest part; and what would help.
// `orders` must not be empty. `stages_fixed`: the user asked for this number of stages.
absl::Status DoesNotFit(Job& job, const ScheduleModel& schedule,
                        const std::vector<std::vector<int>>& orders, bool stages_fixed);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_REFUSAL_H_
