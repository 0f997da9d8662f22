// What a card says of itself while it works, from NVIDIA's management library. That is opened when
// the process runs: neither its header nor the library need be there.
#ifndef LONGHAUL_DAEMON_DEVICE_NVML_H_
#define LONGHAUL_DAEMON_DEVICE_NVML_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "control/device.h"

namespace longhaul::daemon {

// One card, as seen from outside of CUDA. One thread at a time may call it.
class CardMonitor {
 public:
  virtual ~CardMonitor() = default;

  // Of the driver; empty: not told.
  virtual std::string driver_version() const = 0;

  // What the card tells now. An error is the reason why the card cannot be used: it is lost, or
  // must be reset or replaced. A question that it merely does not answer is no error.
  virtual absl::StatusOr<control::CardReadings> Read() = 0;
};

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// The card with this UUID ("GPU-..."). NotFound, with the reason, where the library, or the card in
// it, is not there; a card is no worse for that. Unavailable as Read.
absl::StatusOr<std::unique_ptr<CardMonitor>> OpenNvml(const std::string& uuid,
                                                      const char* library = kNvmlLibrary);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_DEVICE_NVML_H_
