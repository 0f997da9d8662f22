// Data sets on their way in: chunks arrive in any order and are kept until the set is complete.
#ifndef LONGHAUL_DAEMON_RPC_UPLOAD_STAGING_H_
#define LONGHAUL_DAEMON_RPC_UPLOAD_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "data/dataset.h"

namespace longhaul::daemon {

// Thread-safe. A folder that this object owns: DIR/<id>/<chunk>, each verified. What unfinished
// uploads left is used again by the next Begin of the same set while the process lives, and is
// removed when a new process starts.
class UploadStaging {
 public:
  // `store` and `clock` must outlive this.
  UploadStaging(std::string folder, data::DatasetStore& store, Clock& clock,
                size_t uploads_max = 64);

  // Removes what an earlier process left.
  absl::Status Clear();

  // The chunks that are still to be sent; none if the store has the set. When too many sets are
  // being uploaded, the one that was idle longest is dropped; ResourceExhausted if all are busy.
  absl::StatusOr<std::vector<uint64_t>> Begin(const data::DatasetIndex& index);

  // NotFound unless begun; OutOfRange; DataLoss unless the bytes are what the index says;
  // ResourceExhausted on a full disk. Idempotent.
  absl::Status Put(const std::string& id, uint64_t chunk, absl::string_view bytes);

  // Moves the set into the store. FailedPrecondition names the first chunk that is missing.
  absl::Status Finish(const std::string& id);

 private:
  using SharedIndex = std::shared_ptr<const data::DatasetIndex>;
  struct Upload {
    SharedIndex index;
    absl::Time used;
  };
  // Of an upload that is thereby not idle.
  absl::StatusOr<SharedIndex> Find(const std::string& id);
  absl::Status MakeRoomLocked();
  std::string ChunkPath(const std::string& id, uint64_t chunk) const;

  const std::string folder_;
  data::DatasetStore& store_;
  Clock& clock_;
  const size_t uploads_max_;
  std::mutex mutex_;
  std::map<std::string, Upload> uploads_;  // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_UPLOAD_STAGING_H_
