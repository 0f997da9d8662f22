#include "daemon/rpc/convert_device.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/device.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kFactBytesMax = 256;

}  // namespace

void ToWire(const control::CardFacts& facts, v1::CardFacts* wire) {
  wire->set_compute_capability(WireText(facts.compute_capability, kFactBytesMax));
  wire->set_driver(WireText(facts.driver, kFactBytesMax));
  wire->set_uuid(WireText(facts.uuid, kFactBytesMax));
  wire->set_pci_bus_id(WireText(facts.pci_bus_id, kFactBytesMax));
  wire->set_memory_bytes(facts.memory_bytes);
}

control::CardFacts FromWire(const v1::CardFacts& wire, WireCheck& check) {
  return {check.Text("compute_capability", wire.compute_capability(), kFactBytesMax),
          check.Text("driver", wire.driver(), kFactBytesMax),
          check.Text("uuid", wire.uuid(), kFactBytesMax),
          check.Text("pci_bus_id", wire.pci_bus_id(), kFactBytesMax),
          check.Size("card memory_bytes", wire.memory_bytes())};
}

void ToWire(const control::CardReadings& readings, v1::CardReadings* wire) {
  if (readings.temperature_celsius) wire->set_temperature_celsius(*readings.temperature_celsius);
  if (readings.power_watts) wire->set_power_watts(*readings.power_watts);
  if (readings.core_megahertz) wire->set_core_megahertz(*readings.core_megahertz);
  if (readings.memory_megahertz) wire->set_memory_megahertz(*readings.memory_megahertz);
  if (readings.utilization) wire->set_utilization(*readings.utilization);
  if (readings.uncorrected_errors) wire->set_uncorrected_errors(*readings.uncorrected_errors);
  if (readings.memory_used_bytes) wire->set_memory_used_bytes(*readings.memory_used_bytes);
}

control::CardReadings FromWire(const v1::CardReadings& wire, WireCheck& check) {
  control::CardReadings readings;
  if (wire.has_temperature_celsius()) {
    readings.temperature_celsius = wire.temperature_celsius();  // may be below zero
    if (!std::isfinite(wire.temperature_celsius())) {
      check.Also(absl::InvalidArgumentError("temperature_celsius: is not finite"));
    }
  }
  if (wire.has_power_watts()) readings.power_watts = check.Measure("power", wire.power_watts());
  if (wire.has_core_megahertz()) {
    readings.core_megahertz = check.Measure("core_megahertz", wire.core_megahertz());
  }
  if (wire.has_memory_megahertz()) {
    readings.memory_megahertz = check.Measure("memory_megahertz", wire.memory_megahertz());
  }
  if (wire.has_utilization()) {
    readings.utilization = check.Measure("utilization", wire.utilization());
  }
  if (wire.has_uncorrected_errors()) {
    readings.uncorrected_errors = check.Size("uncorrected_errors", wire.uncorrected_errors());
  }
  if (wire.has_memory_used_bytes()) {
    readings.memory_used_bytes = check.Size("memory_used_bytes", wire.memory_used_bytes());
  }
  return readings;
}

coordinator::DeviceKind DeviceKindFromWire(const std::string& kind, WireCheck& check) {
  if (kind.empty()) return coordinator::DeviceKind::kCpu;
  const auto known = coordinator::DeviceKindNamed(WireText(kind, 32));
  if (known.ok()) return *known;
  check.Also(absl::InvalidArgumentError(absl::StrCat("device_kind: ", known.status().message())));
  return coordinator::DeviceKind::kCpu;
}

}  // namespace longhaul::daemon
