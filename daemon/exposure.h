// What makes an address without TLS unsafe.
#ifndef LONGHAUL_DAEMON_EXPOSURE_H_
#define LONGHAUL_DAEMON_EXPOSURE_H_

#include <string>

#include "daemon/values.h"

namespace longhaul::daemon {

// Why an address that is not loopback is refused without TLS, without the remedy: daemons and the
// command line are told otherwise to go on.
std::string WhyExposed(const Address& address);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_EXPOSURE_H_
