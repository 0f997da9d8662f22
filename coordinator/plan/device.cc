#include "coordinator/plan/device.h"

#include "absl/strings/str_cat.h"

namespace longhaul::coordinator {

const char* NameOf(DeviceKind kind) { return kind == DeviceKind::kCpu ? "cpu" : "cuda"; }

absl::StatusOr<DeviceKind> DeviceKindNamed(absl::string_view name) {
  for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (name == NameOf(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no kind of device; known are cpu, cuda"));
}

model::Precision PrecisionOf(const NodeProfile& node, model::Precision of_cards) {
  return node.device_kind == DeviceKind::kCuda ? of_cards : model::Precision::kFloat32;
}

double FlopsPerSecond(const NodeProfile& node, model::Precision of_cards) {
  return PrecisionOf(node, of_cards) == model::Precision::kBFloat16 ? node.bfloat16_flops_per_second
                                                                    : node.flops_per_second;
}

}  // namespace longhaul::coordinator
