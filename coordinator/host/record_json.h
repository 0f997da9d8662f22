// Durable parts of records as JSON with a schema version, both ways.
#ifndef LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_
#define LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

// Names a manifest within a run: an epoch commits a step once.
struct ManifestId {
  Epoch epoch;
  int64_t step = 0;
  auto operator<=>(const ManifestId&) const = default;
};
ManifestId IdOf(const checkpoint::Manifest& manifest);

std::string NodeToJson(const NodeRecord& record);
// Durable fields only. Manifests are named, so that a record stays small however many there are.
std::string RunToJson(const RunRecord& record);

// A run's record whose manifests have to be found by their names.
struct StoredRun {
  RunRecord record;
  std::optional<ManifestId> checkpoint;
  struct Other {
    ManifestId id;
    std::string damage;
  };
  std::vector<Other> others;
};

// InvalidArgument names the key. What is not durable has its default.
absl::StatusOr<NodeRecord> NodeFromJson(absl::string_view json);
// Records of schema 1 hold their manifests themselves.
absl::StatusOr<StoredRun> RunFromJson(absl::string_view json);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_RECORD_JSON_H_
