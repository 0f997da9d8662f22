// Which shards this node keeps: the newest few of the runs that it trained last, and those of the
// checkpoint that it loads, so that its disk is bounded.
//   DIR/kept/<run>.json   the run's steps and shards, ascending
#ifndef LONGHAUL_WORKER_HOST_KEPT_SHARDS_H_
#define LONGHAUL_WORKER_HOST_KEPT_SHARDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_store.h"

namespace longhaul::worker {

// One thread at a time; one process owns the folder.
class KeptShards {
 public:
  // More than the coordinator keeps, since a commit comes after the next shard is written.
  static constexpr size_t kStepsKept = 4;
  // Of older runs the coordinator's copies are fetched when they are resumed.
  static constexpr size_t kRunsKept = 8;

  using Say = std::function<void(const std::string&)>;

  // `store` is the node's shards in the same folder and must outlive this. `say` is told of what a
  // person should know.
  KeptShards(std::string folder, checkpoint::ShardStore& store, Say say)
      : folder_(std::move(folder)), store_(store), say_(std::move(say)) {}

  // Stores a shard and removes what no run keeps any more. A later attempt at a step (after a
  // recovery) replaces the earlier one. Errors as ShardStore::PutShard; what cannot be removed
  // stays. A list that is damaged is moved aside (`.damaged` behind its name) and begun anew; the
  // shards that it named are no longer kept. Lists of more than kRunsKept runs are forgotten, those
  // first that were written longest ago.
  absl::Status Put(const std::string& run, int64_t step, const std::string& sha256,
                   absl::string_view bytes);
  // Stores a shard of `loaded` that came from elsewhere, and removes what neither a run keeps nor
  // `loaded` needs. It stays until the next Put. Errors as ShardStore::PutShard.
  absl::Status PutFetched(const checkpoint::Manifest& loaded, const std::string& sha256,
                          absl::string_view bytes);
  // As ShardStore::GetShard.
  absl::StatusOr<std::string> Get(const std::string& sha256) const {
    return store_.GetShard(sha256);
  }

 private:
  struct Entry {
    int64_t step = 0;
    std::string sha256;
  };
  std::string PathOf(const std::string& run) const;
  absl::StatusOr<std::vector<Entry>> Read(const std::string& run) const;
  static absl::StatusOr<std::vector<Entry>> Parse(const std::string& text);
  absl::Status Write(const std::string& run, const std::vector<Entry>& entries) const;
  // Forgets lists, or damaged ones, of which there are too many; that of `run` stays.
  absl::Status ForgetOldest(const std::string& extension, const std::string& run) const;
  absl::StatusOr<std::vector<std::string>> AllKept() const;

  const std::string folder_;
  checkpoint::ShardStore& store_;
  Say say_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_KEPT_SHARDS_H_
