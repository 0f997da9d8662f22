// Statuses across the wire, and deadlines of calls.
#ifndef LONGHAUL_DAEMON_RPC_STATUS_H_
#define LONGHAUL_DAEMON_RPC_STATUS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace longhaul::daemon {

// The same code and message, the message cut to a length that fits into trailing metadata.
grpc::Status ToGrpc(const absl::Status& status);
// `context`, if not empty, is put in front of the message; OK stays OK.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view context);

// A code that came in a message; kUnknown for a number that is none, and for OK.
absl::StatusCode ErrorCodeFromWire(int32_t code);
// At most `bytes_max` bytes of `text`, cut between UTF-8 characters, and valid UTF-8 throughout:
// what is not becomes '?'. For Protobuf strings that hold messages for people.
std::string WireText(absl::string_view text, size_t bytes_max);

// Ends the call after `duration`, counted by gRPC's own clock from now.
void EndAfter(grpc::ClientContext& context, absl::Duration duration);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_STATUS_H_
