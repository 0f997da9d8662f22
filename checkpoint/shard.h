// The state of some parameters as one shard file's bytes, and back.
#ifndef LONGHAUL_CHECKPOINT_SHARD_H_
#define LONGHAUL_CHECKPOINT_SHARD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "checkpoint/manifest.h"
#include "model/graph.h"

namespace longhaul::checkpoint {

// State of one parameter; spans belong to the caller.
struct ParameterState {
  int index = 0;  // in Graph::parameters
  absl::Span<const float> weights, first_moment, second_moment;
};
struct MutableParameterState {
  int index = 0;
  absl::Span<float> weights, first_moment, second_moment;  // moments: empty if not wanted
};

struct EncodedShard {
  Shard shard;
  std::string bytes;
};
// Deterministic. Spans must have the parameters' sizes, and no index may come twice.
EncodedShard EncodeShard(const model::Graph& graph, absl::Span<const ParameterState> states);

// Checks hash, names, shapes and dtypes against the manifest's entry and the graph, then copies the
// parameters asked for that are in this shard. Returns how many were copied. DataLoss names shard
// and parameter; nothing is copied then.
absl::StatusOr<int> DecodeShard(const model::Graph& graph, const Shard& shard,
                                absl::string_view bytes,
                                absl::Span<const MutableParameterState> wanted);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_SHARD_H_
