// The coordinator's side of the control stream: what workers say, from Protobuf; what they are
// told, to it.
#ifndef LONGHAUL_DAEMON_RPC_CONVERT_COORDINATOR_H_
#define LONGHAUL_DAEMON_RPC_CONVERT_COORDINATOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/events.h"
#include "coordinator/host/session_sink.h"
#include "longhaul/v1/membership.pb.h"

namespace longhaul::daemon {

// The first message of a stream. `address` is the peer's, for messages. InvalidArgument names the
// field; FailedPrecondition is a protocol version that this side does not speak.
absl::StatusOr<coordinator::NodeConnected> RegisterFromWire(const v1::Register& wire,
                                                            uint64_t session,
                                                            const std::string& address);

// Any later message. InvalidArgument names message and field.
absl::StatusOr<coordinator::Event> FromWire(const v1::WorkerMessage& wire, uint64_t session);

v1::CoordinatorMessage ToWire(const control::ToWorker& message);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CONVERT_COORDINATOR_H_
