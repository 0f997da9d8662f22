// Runs and nodes as the command line shows them.
#ifndef LONGHAUL_DAEMON_RPC_SUMMARIES_H_
#define LONGHAUL_DAEMON_RPC_SUMMARIES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/core/core.h"
#include "coordinator/host/coordinator_host.h"
#include "longhaul/v1/admin.pb.h"

namespace longhaul::daemon {

// Whether nothing more happens in this run by itself.
bool IsOver(coordinator::RunState state);

// `whole`: with stages, plan and specification. The reason of a run that is not over says as well
// when the host cannot write its journal.
absl::StatusOr<v1::RunSummary> SummariseRun(const coordinator::State& state,
                                            const coordinator::RunRecord& run,
                                            coordinator::CoordinatorHost& host, bool whole);

// All that a resume can name, ascending by step.
std::vector<checkpoint::Manifest> CheckpointsOf(const coordinator::RunRecord& run);
// What a person should know of a stored checkpoint of the run: that it is damaged, or was left
// behind when the run went back; empty: nothing.
std::string CheckpointNote(const coordinator::RunRecord& run, const checkpoint::Manifest& manifest);

v1::NodeSummary SummariseNode(const coordinator::State& state, const coordinator::NodeRecord& node,
                              absl::Time now);

// As configured, for who plans.
v1::LinkSummary ToWire(const coordinator::LinkProfile& link);

// The rate is that of this step alone.
v1::WatchedStep ToWire(const coordinator::CompletedStep& step);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_SUMMARIES_H_
