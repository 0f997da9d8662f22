// A stage's state as checkpoint shards, and back.
#ifndef LONGHAUL_WORKER_HOST_STAGE_STATE_H_
#define LONGHAUL_WORKER_HOST_STAGE_STATE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard.h"
#include "compute/stage/stage.h"
#include "worker/host/kept_shards.h"
#include "worker/host/remote.h"
#include "worker/host/retry.h"

namespace longhaul::worker {

// Encodes the state of the `owned` parameters (indices, ascending). An error is the device's.
absl::StatusOr<checkpoint::EncodedShard> SaveStage(const model::Graph& graph,
                                                   const std::vector<int>& owned,
                                                   compute::Stage<float>& stage);

struct ShardSources {
  KeptShards* local = nullptr;
  RemoteStore* remote = nullptr;
  absl::FunctionRef<Patience()> patience;  // with the coordinator, for one shard
  // Called before each shard is read and before it is fetched, and at the end. An error ends the
  // loading.
  absl::FunctionRef<absl::Status()> goes_on;
  // Told what was wrong with a local copy, and where a shard came from.
  absl::FunctionRef<void(const std::string&)> note;
};

// Fills every parameter of the stage from the checkpoint. Shards come from this node where it has
// them, else from the coordinator; each is checked against its hash, and a damaged local copy is
// fetched again. What was fetched stays on this node, so that a later attempt need not fetch it. A
// coordinator that is away is asked again while there is patience. DataLoss or NotFound names the
// shard or the parameter that nobody has; `damaged_shard` is then the shard's hash.
absl::Status LoadStage(const model::Graph& graph, const checkpoint::Manifest& manifest,
                       compute::Stage<float>& stage, const ShardSources& sources,
                       std::string& damaged_shard);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_STAGE_STATE_H_
