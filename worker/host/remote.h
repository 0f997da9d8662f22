// What the worker's host needs from the coordinator besides messages: bulk data.
#ifndef LONGHAUL_WORKER_HOST_REMOTE_H_
#define LONGHAUL_WORKER_HOST_REMOTE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "data/dataset.h"

namespace longhaul::worker {

// Thread-safe. Every call ends by its deadline; Unavailable while the coordinator cannot be
// reached.
class RemoteStore {
 public:
  virtual ~RemoteStore() = default;
  virtual absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string& dataset,
                                                        absl::Time deadline) = 0;
  virtual absl::StatusOr<std::string> FetchChunk(const std::string& dataset, uint64_t chunk,
                                                 absl::Time deadline) = 0;
  // Unverified bytes; the caller checks the hash. At most bytes_max are read.
  virtual absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t bytes_max,
                                                 absl::Time deadline) = 0;
  // OK when the coordinator has the shard on disk.
  virtual absl::Status StoreShard(const std::string& sha256, absl::string_view bytes,
                                  absl::Time deadline) = 0;
  // Every present and future call of this object returns Cancelled soon. Its views are not touched.
  virtual void Cancel() = 0;
  // The same store behind another object, which is cancelled by itself. This must outlive it.
  virtual std::unique_ptr<RemoteStore> MakeView() = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_REMOTE_H_
