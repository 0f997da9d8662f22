// Private to the host: an assignment filled in from the records.
#ifndef LONGHAUL_COORDINATOR_HOST_ASSIGNMENT_H_
#define LONGHAUL_COORDINATOR_HOST_ASSIGNMENT_H_

#include "coordinator/core/core.h"
#include "coordinator/host/session_sink.h"

namespace longhaul::coordinator {

// The run has a plan with that stage, and every node of the plan has a record.
control::Assignment FillAssignment(const State& state, const Assign& action);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_ASSIGNMENT_H_
