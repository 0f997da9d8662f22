// The checkpoint of step 0 that a run begins from when its weights are given.
#ifndef LONGHAUL_CHECKPOINT_INITIAL_SHARDS_H_
#define LONGHAUL_CHECKPOINT_INITIAL_SHARDS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard.h"

namespace longhaul::checkpoint {

// Encodes the weights, with moments of zero, block after block into shards of about 64 MiB of
// weights, so that a stage reads little that is not its own. Gives each shard to `store`, one in
// memory at a time, and returns the manifest of step 0 and epoch 0.0. Errors are those of `store`.
absl::StatusOr<Manifest> StoreInitialShards(
    const std::string& run, const ModelWeights& weights,
    absl::FunctionRef<absl::Status(const EncodedShard&)> store);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_INITIAL_SHARDS_H_
