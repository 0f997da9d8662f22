// Which coordinator a command talks to, and with what credentials.
#ifndef LONGHAUL_CLI_TARGET_H_
#define LONGHAUL_CLI_TARGET_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "daemon/config.h"

namespace longhaul::cli {

struct Target {
  std::string address;  // host:port
  std::string source;   // how the address was found
  daemon::SecurityConfig security;
};

// The address is that of --coordinator, else of LONGHAUL_COORDINATOR (unless --dir is given), else
// the local cluster's; Unavailable if there is none. Without TLS the token is that of --token-file,
// else of LONGHAUL_TOKEN_FILE, else the local cluster's, which is for its own address only.
// InvalidArgument for what is no address, for half of the TLS files, without any token, and for an
// address that is not loopback with neither TLS nor --insecure.
absl::StatusOr<Target> FindTarget(const Context& context);

// Whether commands talk to the local cluster: no other address is given, or its own is.
bool IsLocalTarget(const Context& context);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_TARGET_H_
