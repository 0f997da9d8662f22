#include "daemon/exposure.h"

#include "absl/strings/str_cat.h"

namespace longhaul::daemon {

std::string WhyExposed(const Address& address) {
  return absl::StrCat("'", ToString(address),
                      "' is not a loopback address and TLS is off: others on the network could "
                      "read and change everything");
}

}  // namespace longhaul::daemon
