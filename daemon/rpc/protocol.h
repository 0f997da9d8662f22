// The versions of the control protocol that this build speaks.
#ifndef LONGHAUL_DAEMON_RPC_PROTOCOL_H_
#define LONGHAUL_DAEMON_RPC_PROTOCOL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace longhaul::daemon {

struct ProtocolVersions {
  uint32_t oldest = 1;
  uint32_t newest = 1;
  std::string build;  // "0.1.0"
};

ProtocolVersions OwnProtocol();

// OK if both speak a version in common. Else FailedPrecondition with both ranges, both builds and
// which side to upgrade. `peer` names the other side ("worker b1").
absl::Status CheckProtocol(const ProtocolVersions& own, const ProtocolVersions& peers,
                           const std::string& peer);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_PROTOCOL_H_
