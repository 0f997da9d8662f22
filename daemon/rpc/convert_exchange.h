// Messages between two workers, to and from Protobuf.
#ifndef LONGHAUL_DAEMON_RPC_CONVERT_EXCHANGE_H_
#define LONGHAUL_DAEMON_RPC_CONVERT_EXCHANGE_H_

#include "absl/status/statusor.h"
#include "longhaul/v1/exchange.pb.h"
#include "worker/comm/transport.h"

namespace longhaul::daemon {

v1::StreamMessage ToWire(const worker::StreamMessage& message);
v1::StreamReply ToWire(const worker::StreamReply& reply);

// InvalidArgument names the field. Takes the bytes of a chunk out of `wire`. That a chunk fits the
// frame the plan announces is the receiving exchange's to check.
absl::StatusOr<worker::StreamMessage> FromWire(v1::StreamMessage&& wire);
absl::StatusOr<worker::StreamReply> FromWire(const v1::StreamReply& wire);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CONVERT_EXCHANGE_H_
