#include "base/host_port.h"

namespace longhaul {

std::optional<HostPort> SplitHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return std::nullopt;
  HostPort parts = {text.substr(0, colon), text.substr(colon + 1)};
  parts.bracketed = parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']';
  if (parts.bracketed) parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

}  // namespace longhaul
