// A folder of content-addressed shards and committed manifests.
//   DIR/shards/<sha256>              written atomically, never changed
//   DIR/manifests/<run>/<step>.json  the commit
#ifndef LONGHAUL_CHECKPOINT_SHARD_STORE_H_
#define LONGHAUL_CHECKPOINT_SHARD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_pieces.h"
#include "checkpoint/manifest.h"

namespace longhaul::checkpoint {

// Thread-safe; one process owns the folder.
class ShardStore {
 public:
  explicit ShardStore(std::string folder);

  // Idempotent; replaces a stored shard that is damaged. InvalidArgument if `sha256` is no hash,
  // DataLoss if the bytes do not have the hash; ResourceExhausted on a full disk.
  absl::Status PutShard(absl::string_view sha256, absl::string_view bytes);
  // NotFound, or DataLoss naming the file if the stored bytes no longer have the hash, or it is no
  // file at all (a pipe, a device) any more.
  absl::StatusOr<std::string> GetShard(absl::string_view sha256) const;
  // As GetShard, in pieces of `piece_bytes` to `take`, whose error ends it. The bytes are good only
  // if this says so in the end.
  absl::Status ReadShard(absl::string_view sha256, size_t piece_bytes, AppendPiece take) const;
  // The length of a stored shard, whose bytes are not checked. NotFound.
  absl::StatusOr<uint64_t> ShardBytes(absl::string_view sha256) const;
  // Stored shards that no readable manifest of any run names: on their way into one, or rubbish.
  absl::StatusOr<std::vector<std::string>> UnnamedShards() const;

  // Refuses (InvalidArgument or FailedPrecondition, naming parameter or shard) a manifest that does
  // not cover `graph`, one of whose shards is not here in its length, or whose step is already
  // committed under a newer epoch. Replaces one of the same or an older epoch.
  absl::Status Commit(const Manifest& manifest, const model::Graph& graph);
  // Ascending by step. Files that do not parse or do not belong to their name are reported in
  // `damaged` ("FILE: why"), not hidden.
  absl::StatusOr<std::vector<Manifest>> Manifests(absl::string_view run,
                                                  std::vector<std::string>* damaged) const;

  // Names of the runs that have a manifest here, ascending.
  absl::StatusOr<std::vector<std::string>> Runs() const;

  // Removes the run's manifests of steps before `before_step`, damaged ones too, then every shard
  // that no manifest of any run names, except those in `protected_shards` (being written now), then
  // what writes that were cut short have left. While a manifest of any run is damaged,
  // shards that it may name are not known: all are kept, and DataLoss names the file.
  absl::Status Prune(absl::string_view run, int64_t before_step,
                     const std::vector<std::string>& protected_shards);

 private:
  absl::StatusOr<std::vector<std::string>> RunNames() const;
  std::string ShardPath(absl::string_view sha256) const;
  std::string RunFolder(absl::string_view run) const;
  absl::StatusOr<std::vector<Manifest>> ReadManifests(absl::string_view run,
                                                      std::vector<std::string>* damaged) const;
  absl::Status RemoveOldManifests(absl::string_view run, int64_t before_step);
  absl::StatusOr<absl::flat_hash_set<std::string>> NamedShards(
      std::vector<std::string>* damaged) const;

  const std::string folder_;
  mutable std::mutex mutex_;  // held while files are written, listed or removed
};

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_SHARD_STORE_H_
