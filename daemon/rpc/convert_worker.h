// The worker's side of the control stream: what it says, to Protobuf; what it hears, from it.
#ifndef LONGHAUL_DAEMON_RPC_CONVERT_WORKER_H_
#define LONGHAUL_DAEMON_RPC_CONVERT_WORKER_H_

#include "absl/status/statusor.h"
#include "longhaul/v1/membership.pb.h"
#include "worker/host/messages.h"

namespace longhaul::daemon {

v1::WorkerMessage ToWire(const worker::ToCoordinator& message);

// InvalidArgument names message and field. An assignment's own contradictions are found by whoever
// builds the stage; sizes, counts and names are checked here.
absl::StatusOr<worker::ToWorker> FromWire(const v1::CoordinatorMessage& wire);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CONVERT_WORKER_H_
