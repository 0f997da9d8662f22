// The index of a Megatron-LM token file: PREFIX.idx beside PREFIX.bin (NVIDIA/Megatron-LM,
// megatron/core/datasets/indexed_dataset.py, _IndexWriter). docs/formats.md has the bytes.
#ifndef LONGHAUL_DATA_MEGATRON_INDEX_H_
#define LONGHAUL_DATA_MEGATRON_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/mapping.h"
#include "data/token_format.h"

namespace longhaul::data {

// Whether the file at `path` begins as an index does.
bool LooksLikeMegatronIndex(const std::string& path);

// Read-only memory map of the index; immutable. Its sequences are those of the builder that wrote
// it, mostly one a document; they follow one another in the token file without gaps.
class MegatronIndex {
 public:
  // Reads everything once. Errors name the path and what is wrong: another magic number, version or
  // type of numbers than tokens have, a length that does not fit the counts, sequence modes (data
  // of several kinds), lengths or pointers that do not follow one another, documents out of order.
  static absl::StatusOr<MegatronIndex> Open(const std::string& path);

  TokenFormat format() const { return format_; }
  int64_t tokens() const { return tokens_; }  // of all sequences
  // Positions of the first tokens of all documents that are not empty: ascending, the first 0.
  std::vector<int64_t> DocumentStarts() const;

 private:
  MegatronIndex(Mapping mapping, std::string path)
      : mapping_(std::move(mapping)), path_(std::move(path)) {}

  absl::Status ReadHeader();
  absl::Status CheckSequences();
  absl::Status CheckDocuments();
  int64_t Length(int64_t sequence) const;
  int64_t Pointer(int64_t sequence) const;
  int64_t DocumentBegin(int64_t document) const;  // a sequence
  absl::Status Refuse(const std::string& what) const;

  Mapping mapping_;
  std::string path_;
  TokenFormat format_ = TokenFormat::kUint16;
  int64_t sequences_ = 0;
  int64_t document_entries_ = 0;  // one more than there are documents
  int64_t tokens_ = 0;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_MEGATRON_INDEX_H_
