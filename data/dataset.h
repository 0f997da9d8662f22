// Content-addressed data sets: a file, cut into chunks whose hashes are listed in an index; the hash
// of the index is the data set's id. Any node can fetch any range from any source and verify it.
#ifndef LONGHAUL_DATA_DATASET_H_
#define LONGHAUL_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::data {

inline constexpr uint64_t kChunkBytes = 1 << 20;

struct DatasetIndex {
  uint64_t bytes = 0;
  std::vector<std::string> chunk_sha256;  // of each kChunkBytes piece; the last may be shorter

  std::string ToJson() const;  // canonical: equal indexes give equal text
  // Checks counts against `bytes` before anything is allocated from them.
  static absl::StatusOr<DatasetIndex> FromJson(absl::string_view json);
  std::string Id() const;  // SHA-256 of ToJson()
};

absl::StatusOr<DatasetIndex> IndexFile(const std::string& path);

// A folder of data sets: DIR/<id>.json and DIR/<id>.data. One process owns the folder.
class DatasetStore {
 public:
  explicit DatasetStore(std::string folder);
  bool Has(absl::string_view id) const;
  std::string DataPath(absl::string_view id) const;
  absl::StatusOr<DatasetIndex> Index(absl::string_view id) const;

  // Makes the data set complete: `fetch(chunk)` is called for chunks that are not there yet, each
  // verified against the index before it is kept; what a broken download left is used again. The
  // set appears under its id only when complete.
  absl::Status Fill(const DatasetIndex& index,
                    absl::FunctionRef<absl::StatusOr<std::string>(uint64_t chunk)> fetch);

  // One verified chunk, for serving.
  absl::StatusOr<std::string> ReadChunk(absl::string_view id, uint64_t chunk) const;

 private:
  const std::string folder_;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_DATASET_H_
