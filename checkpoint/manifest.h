// The manifest of a checkpoint: which shards hold which tensors. A checkpoint exists when its
// manifest is committed.
#ifndef LONGHAUL_CHECKPOINT_MANIFEST_H_
#define LONGHAUL_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "model/graph.h"

namespace longhaul::checkpoint {

// One content-addressed file: the weights and AdamW moments of some parameters, as safetensors with
// tensors "NAME", "NAME.first_moment", "NAME.second_moment".
struct Shard {
  std::string sha256;
  uint64_t bytes = 0;
  std::vector<std::string> parameters;
  bool operator==(const Shard&) const = default;
};

struct Manifest {
  std::string run;
  Epoch epoch;
  int64_t step = 0;    // completed optimizer steps
  int64_t tokens = 0;  // consumed so far
  std::string numeric_class;
  std::vector<Shard> shards;
  bool operator==(const Manifest&) const = default;
};

// Every parameter of the graph is in exactly one shard, and nothing else is. InvalidArgument names
// the parameter that is missing, doubled or unknown, or the shard that is empty.
absl::Status ValidateCoverage(const Manifest& manifest, const model::Graph& graph);

// JSON with a schema version, both ways. InvalidArgument for anything but what ToJson writes, names
// and hashes that are not safe as file names included.
std::string ToJson(const Manifest& manifest);
absl::StatusOr<Manifest> ManifestFromJson(absl::string_view json);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_MANIFEST_H_
