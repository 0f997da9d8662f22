// Durable parts of records as JSON with a schema version, both ways.
#ifndef LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_
#define LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

std::string NodeToJson(const NodeRecord& record);
// Durable fields only.
std::string RunToJson(const RunRecord& record);

// InvalidArgument names the key. What is not durable has its default.
absl::StatusOr<NodeRecord> NodeFromJson(absl::string_view json);
absl::StatusOr<RunRecord> RunFromJson(absl::string_view json);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_
