#include "daemon/values.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"

namespace longhaul::daemon {
namespace {

constexpr std::array<std::pair<absl::string_view, double>, 9> kUnits = {{
    {"", 1.0},
    {"b", 1.0},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"kib", 1024.0},
    {"mib", 1024.0 * 1024},
    {"gib", 1024.0 * 1024 * 1024},
    {"tib", 1024.0 * 1024 * 1024 * 1024},
}};

std::optional<double> UnitBytes(absl::string_view unit) {
  for (const auto& [name, bytes] : kUnits) {
    if (absl::EqualsIgnoreCase(unit, name)) return bytes;
  }
  return std::nullopt;
}

bool IsHostName(absl::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  for (const char c : host) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') {
      return false;
    }
  }
  return true;
}

bool IsIpv6(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

absl::Status AddressError(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "expected HOST:PORT or [IPV6]:PORT with a port from 0 to 65535, got '", text, "'"));
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a duration such as 500ms, 10s or 1m30s, got '", text, "'"));
  }
  return duration;
}

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.')) {
    ++digits;
  }
  double number = 0;
  const bool numeric = absl::SimpleAtod(text.substr(0, digits), &number);
  const std::optional<double> unit = UnitBytes(absl::StripAsciiWhitespace(text.substr(digits)));
  if (!numeric || !unit || number * *unit < 1 || number * *unit >= std::ldexp(1.0, 63)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a size such as 512 MiB or 4 GiB, got '", text, "'"));
  }
  return static_cast<int64_t>(number * *unit);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const std::optional<HostPort> parts = SplitHostPort(text);
  if (!parts.has_value()) return AddressError(text);
  Address address;
  address.host = std::string(parts->host);
  const bool host_good = parts->bracketed ? IsIpv6(address.host) : IsHostName(address.host);
  const bool digits_only = !parts->port.empty() &&
                           parts->port.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!host_good || !digits_only || !absl::SimpleAtoi(parts->port, &address.port) ||
      address.port > 65535) {
    return AddressError(text);
  }
  return address;
}

std::string ToString(const Address& address) {
  const bool ipv6 = absl::StrContains(address.host, ':');
  return absl::StrCat(ipv6 ? "[" : "", address.host, ipv6 ? "]" : "", ":", address.port);
}

bool IsLoopback(const Address& address) {
  if (absl::EqualsIgnoreCase(address.host, "localhost")) return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool IsWildcard(const Address& address) {
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return v4.s_addr == 0;
  in6_addr v6;
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

}  // namespace longhaul::daemon
