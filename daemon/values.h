// Values that people write in configuration files: durations, sizes, addresses.
#ifndef LONGHAUL_DAEMON_VALUES_H_
#define LONGHAUL_DAEMON_VALUES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace longhaul::daemon {

// "10s", "1m30s", "500ms": finite and not negative.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// "512 MiB", "4GiB", "1.5 GB", "1048576": at least one byte, below 2^63.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

// A host and a port. IPv6 hosts are written in brackets and held without them.
struct Address {
  std::string host;
  int port = 0;
  bool operator==(const Address&) const = default;
};

// "127.0.0.1:7070", "[::1]:0", "node-3.example.org:7070".
absl::StatusOr<Address> ParseAddress(absl::string_view text);
std::string ToString(const Address& address);

// Whether only processes of this machine can reach the host: 127.0.0.0/8, ::1 or "localhost".
bool IsLoopback(const Address& address);
// Whether the host means every interface (0.0.0.0 or ::), so that nobody can dial it as written.
bool IsWildcard(const Address& address);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_VALUES_H_
