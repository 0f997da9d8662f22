// What a node's device computes in for a run, and how fast.
#ifndef LONGHAUL_COORDINATOR_PLAN_DEVICE_H_
#define LONGHAUL_COORDINATOR_PLAN_DEVICE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/plan/planner.h"
#include "model/precision.h"

namespace longhaul::coordinator {

// "cpu", "cuda": in files, records and on the wire.
const char* NameOf(DeviceKind kind);
// InvalidArgument lists the known names.
absl::StatusOr<DeviceKind> DeviceKindNamed(absl::string_view name);

// `of_cards`: the run's train.precision, which only cards follow.
model::Precision PrecisionOf(const NodeProfile& node, model::Precision of_cards);

// The node's matrix-product rate in that precision.
double FlopsPerSecond(const NodeProfile& node, model::Precision of_cards);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_DEVICE_H_
