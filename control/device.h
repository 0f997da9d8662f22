// What a worker says of the device that it computes on.
#ifndef LONGHAUL_CONTROL_DEVICE_H_
#define LONGHAUL_CONTROL_DEVICE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul::control {

// Kinds of devices, as on the wire.
inline constexpr char kCpuDevice[] = "cpu";
inline constexpr char kCudaDevice[] = "cuda";

// Of a card, fixed while its worker lives. Empty or 0: not known.
struct CardFacts {
  std::string compute_capability;  // "9.0"
  std::string driver;              // its version, and that of CUDA that it supports
  std::string uuid;                // "GPU-" and 32 hexadecimal digits in five groups
  std::string pci_bus_id;          // "0000:17:00.0"
  int64_t memory_bytes = 0;        // of the whole card, whoever uses it
  bool operator==(const CardFacts&) const = default;
};

// Of a card at one moment; what it does not tell is absent.
struct CardReadings {
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> core_megahertz;  // of its processors' clock
  std::optional<double> memory_megahertz;
  std::optional<double> utilization;          // share of the time that a kernel ran, 0 to 1
  std::optional<int64_t> uncorrected_errors;  // of its memory since the driver was loaded
  std::optional<int64_t> memory_used_bytes;   // by whomever
  bool operator==(const CardReadings&) const = default;
};

}  // namespace longhaul::control

#endif  // LONGHAUL_CONTROL_DEVICE_H_
