// The secret that the daemons and the command line of one cluster share where TLS is off.
#ifndef LONGHAUL_DAEMON_CLUSTER_TOKEN_H_
#define LONGHAUL_DAEMON_CLUSTER_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"

namespace longhaul::daemon {

// The file's text without white space at its ends: 16 to 1024 printable ASCII characters without
// spaces. Refused if others than the owner may read or change the file, or if it belongs to neither
// this user nor root. Errors name path and remedy, never the token.
absl::StatusOr<std::string> ReadClusterToken(const std::string& path);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_CLUSTER_TOKEN_H_
