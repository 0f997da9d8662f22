// Content-addressed data sets: a file, cut into chunks whose hashes are listed in an index; the
// hash of the index is the data set's id. Any node can fetch any range from any source and verify
// it.
#ifndef LONGHAUL_DATA_DATASET_H_
#define LONGHAUL_DATA_DATASET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::data {

inline constexpr uint64_t kChunkBytes = 1 << 20;
inline constexpr uint64_t kDatasetBytesMax = uint64_t{120} << 30;
// Of any index as JSON: it goes over the wire as one message. A hash takes 67 bytes in it.
inline constexpr uint64_t kIndexBytesMax = kDatasetBytesMax / kChunkBytes * 67 + 128;

struct DatasetIndex {
  uint64_t bytes = 0;
  std::vector<std::string> chunk_sha256;  // of each kChunkBytes piece; the last may be shorter

  std::string ToJson() const;  // canonical: equal indexes give equal text
  // Validates what it reads.
  static absl::StatusOr<DatasetIndex> FromJson(absl::string_view json);
  std::string Id() const;  // SHA-256 of ToJson()
  // InvalidArgument unless `bytes` is from 1 to kDatasetBytesMax and the list has exactly the
  // hashes that it needs.
  absl::Status Validate() const;
  // Length of one chunk, which must exist.
  uint64_t ChunkBytes(uint64_t chunk) const;
};

// The length of a file that can be a data set; InvalidArgument if it is empty or longer than
// kDatasetBytesMax. Reads nothing of it.
absl::StatusOr<uint64_t> DatasetBytes(const std::string& path);

// Called again and again in what may take long. An error ends it and is its result.
using GoesOn = absl::FunctionRef<absl::Status()>;
inline absl::Status AlwaysGoesOn() { return absl::OkStatus(); }

// Hashes a file. Errors as DatasetBytes.
absl::StatusOr<DatasetIndex> IndexFile(const std::string& path, GoesOn goes_on = AlwaysGoesOn);

// A folder of data sets: DIR/<id>.data, then DIR/<id>.json, which makes it complete; DIR/<id>.part
// is a download that broke off. One process owns the folder; thread-safe.
class DatasetStore {
 public:
  using FetchChunk = absl::FunctionRef<absl::StatusOr<std::string>(uint64_t chunk)>;

  explicit DatasetStore(std::string folder);
  // Whether it is there in its whole length. False also for what is no id at all.
  bool Has(absl::string_view id) const;
  // OK if the stored bytes are what the id says; NotFound or DataLoss naming the file if not. Reads
  // all of them once, and again when the file has changed since or a chunk was found damaged.
  absl::Status Verify(absl::string_view id, GoesOn goes_on = AlwaysGoesOn) const;
  // `id` must be 64 hexadecimal digits, as those of complete data sets are.
  std::string DataPath(absl::string_view id) const;
  // NotFound, or DataLoss naming the file that no longer is what its id says.
  absl::StatusOr<DatasetIndex> Index(absl::string_view id) const;

  // Makes the data set complete: `fetch(chunk)` is called for chunks that are not there yet, each
  // verified against the index before it is kept; what a broken download left is used again. The
  // set appears under its id only when complete. The first error of `fetch` or of the disk ends the
  // call; DataLoss names a chunk that is not what the index says. InvalidArgument for an index that
  // is not valid, FailedPrecondition while another thread fills the same set. A set that is there
  // is verified first, and of a damaged one only the bad chunks are fetched.
  absl::Status Fill(const DatasetIndex& index, FetchChunk fetch, GoesOn goes_on = AlwaysGoesOn);

  // One verified chunk, for serving. OutOfRange past the last, DataLoss naming file and chunk.
  absl::StatusOr<std::string> ReadChunk(absl::string_view id, uint64_t chunk) const;

 private:
  using SharedIndex = std::shared_ptr<const DatasetIndex>;
  absl::StatusOr<SharedIndex> CachedIndex(absl::string_view id) const;
  absl::Status FillAlone(const DatasetIndex& index, const std::string& id, FetchChunk fetch,
                         GoesOn goes_on);

  // Of a data file: a write changes it. Empty: there is none.
  std::string StampOf(absl::string_view id) const;

  const std::string folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string, std::less<>> verified_;  // guarded by mutex_; stamps
  mutable std::map<std::string, SharedIndex, std::less<>> indexes_;   // guarded by mutex_
  std::set<std::string> filling_;                                     // guarded by mutex_
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_DATASET_H_
