// Which process of a host uses a device: so that two workers do not get in each other's way by
// mistake.
#ifndef LONGHAUL_DAEMON_DEVICE_DEVICE_CLAIM_H_
#define LONGHAUL_DAEMON_DEVICE_DEVICE_CLAIM_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::daemon {

// How many workers can share a device.
inline constexpr int kSharersMax = 16;

// Holds a device for its owner until destroyed; the system lets go of it however the process ends.
// A device has kSharersMax places, each a name of the abstract socket namespace: who shares takes
// one, who does not takes all. Not seen by processes in other network namespaces (containers).
class DeviceClaim {
 public:
  // `uuid` is the device's. FailedPrecondition names the process that has it, with its command
  // line where that can be read, and says what to do. `device` is for the message ("cuda:0").
  static absl::StatusOr<DeviceClaim> Take(absl::string_view device, absl::string_view uuid,
                                          bool shared);
  ~DeviceClaim();
  DeviceClaim(DeviceClaim&& other) noexcept : places_(std::exchange(other.places_, {})) {}
  DeviceClaim& operator=(DeviceClaim&& other) noexcept {
    std::swap(places_, other.places_);
    return *this;
  }

 private:
  DeviceClaim() = default;
  std::vector<int> places_;  // sockets
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_DEVICE_DEVICE_CLAIM_H_
