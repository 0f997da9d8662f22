// Network addresses as text, taken apart.
#ifndef LONGHAUL_BASE_HOST_PORT_H_
#define LONGHAUL_BASE_HOST_PORT_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace longhaul {

// Views into the text that was taken apart.
struct HostPort {
  absl::string_view host;  // without brackets
  absl::string_view port;  // whatever follows the last colon
  bool bracketed = false;  // the host stood in brackets, as those of IPv6 do
};

// "HOST:PORT" or "[HOST]:PORT"; nothing is checked of either part but that the host is not empty.
// Absent for any other text.
std::optional<HostPort> SplitHostPort(absl::string_view text);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_HOST_PORT_H_
