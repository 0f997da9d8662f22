#include "daemon/device/device_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace longhaul::daemon {
namespace {

// More refusals than this wait for no answer at once; the next are not told who has the device.
constexpr int kAskersMax = 128;

struct PlaceAddress {
  PlaceAddress(absl::string_view uuid, int place) {
    const std::string name =
        absl::StrCat("longhaul-device/", uuid.substr(0, 64), "/", place);  // below sun_path's 107
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address = {};
  socklen_t size = 0;
};

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// A socket that holds the place; -1: somebody has it, or errno says otherwise.
int TakePlace(const PlaceAddress& place) {
  const int holder = NewSocket();
  if (holder < 0) return -1;
  // Who connects is told the process by the system; nobody needs to accept.
  if (bind(holder, place.pointer(), place.size) == 0 && listen(holder, kAskersMax) == 0) {
    return holder;
  }
  const int error = errno;
  close(holder);
  errno = error;
  return -1;
}

// "process 17 (longhauld worker --config a.yaml)".
std::string HolderOf(const PlaceAddress& place) {
  const int asker = NewSocket();
  ucred holder = {};
  socklen_t size = sizeof(holder);
  const bool known = asker >= 0 && connect(asker, place.pointer(), place.size) == 0 &&
                     getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0;
  if (asker >= 0) close(asker);
  if (!known || holder.pid <= 0) return "another process";
  // Its arguments, with a zero byte behind each.
  std::array<char, 512> arguments = {};
  std::ifstream file(absl::StrCat("/proc/", holder.pid, "/cmdline"), std::ios::binary);
  file.read(arguments.data(), arguments.size());
  std::string command(arguments.data(), static_cast<size_t>(file.gcount()));
  std::replace(command.begin(), command.end(), '\0', ' ');
  absl::StripTrailingAsciiWhitespace(&command);
  return absl::StrCat("process ", holder.pid,
                      command.empty() ? "" : absl::StrCat(" (", command, ")"));
}

}  // namespace

DeviceClaim::~DeviceClaim() {
  for (const int place : places_) close(place);
}

absl::StatusOr<DeviceClaim> DeviceClaim::Take(absl::string_view device, absl::string_view uuid,
                                              bool shared) {
  DeviceClaim claim;
  std::string holder;
  for (int place = 0; place < kSharersMax; ++place) {
    const PlaceAddress address(uuid, place);
    const int taken = TakePlace(address);
    if (taken >= 0) claim.places_.push_back(taken);
    if (taken >= 0 && shared) return claim;
    if (taken >= 0) continue;
    if (errno != EADDRINUSE) return ErrnoStatus(errno, "claim", device);
    if (holder.empty()) holder = HolderOf(address);
    if (!shared) break;
  }
  if (holder.empty()) return claim;
  return absl::FailedPreconditionError(absl::StrCat(
      device, " (", uuid, ") is used by ", holder,
      "; stop that, give this worker another card, or, to let both share it, write `share_device: "
      "true` in both configurations; at most ",
      kSharersMax, " share one"));
}

}  // namespace longhaul::daemon
