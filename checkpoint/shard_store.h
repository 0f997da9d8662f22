// A folder of content-addressed shards and committed manifests.
//   DIR/shards/<sha256>              written atomically, never changed
//   DIR/manifests/<run>/<step>.json  the commit
#ifndef LONGHAUL_CHECKPOINT_SHARD_STORE_H_
#define LONGHAUL_CHECKPOINT_SHARD_STORE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoint/manifest.h"

namespace longhaul::checkpoint {

// Thread-safe; one process owns the folder.
class ShardStore {
 public:
  explicit ShardStore(std::string folder);

  // Idempotent. DataLoss if the bytes do not have the hash; ResourceExhausted on a full disk.
  absl::Status PutShard(absl::string_view sha256, absl::string_view bytes);
  // DataLoss naming shard and file if the stored bytes no longer have the hash.
  absl::StatusOr<std::string> GetShard(absl::string_view sha256) const;
  bool HasShard(absl::string_view sha256) const;

  // Refuses a manifest one of whose shards is not here, or that does not cover `graph`.
  absl::Status Commit(const Manifest& manifest, const model::Graph& graph);
  // Ascending by step. Files that do not parse are reported in `damaged`, not hidden.
  absl::StatusOr<std::vector<Manifest>> Manifests(absl::string_view run,
                                                  std::vector<std::string>* damaged) const;

  // Keeps the newest `keep` manifests of the run and removes older ones, then every shard that no
  // manifest of any run names, except those in `protected_shards` (being written now).
  absl::Status Prune(absl::string_view run, int keep,
                     const std::vector<std::string>& protected_shards);

 private:
  const std::string folder_;
};

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_SHARD_STORE_H_
