#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/dataset.h"

namespace longhaul::data {
namespace {

constexpr int64_t kSchema = 1;

uint64_t ChunkCount(uint64_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

absl::StatusOr<DatasetIndex> FromValue(const Json& root) {
  LH_RETURN_IF_ERROR(JsonSchema(root, kSchema));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(root, {"schema", "bytes", "chunk_bytes", "chunk_sha256"}));
  LH_ASSIGN_OR_RETURN(const int64_t bytes, JsonWhole(root, "bytes", 1, kDatasetBytesMax));
  LH_RETURN_IF_ERROR(JsonWhole(root, "chunk_bytes", kChunkBytes, kChunkBytes).status());
  LH_ASSIGN_OR_RETURN(const Json* hashes, JsonArray(root, "chunk_sha256"));
  DatasetIndex index;
  index.bytes = static_cast<uint64_t>(bytes);
  for (const Json& hash : *hashes) {
    if (!hash.is_string())
      return absl::InvalidArgumentError("'chunk_sha256' is not a list of text");
    index.chunk_sha256.push_back(hash.get<std::string>());
  }
  LH_RETURN_IF_ERROR(index.Validate());
  return index;
}

}  // namespace

std::string DatasetIndex::ToJson() const {
  return Json({{"schema", kSchema},
               {"bytes", bytes},
               {"chunk_bytes", kChunkBytes},
               {"chunk_sha256", chunk_sha256}})
      .dump();
}

absl::StatusOr<DatasetIndex> DatasetIndex::FromJson(absl::string_view json) {
  const auto root = ParseJson(json, kIndexBytesMax);
  if (!root.ok()) return Annotate(root.status(), "data set index");
  auto index = FromValue(*root);
  if (!index.ok()) return Annotate(index.status(), "data set index");
  return index;
}

std::string DatasetIndex::Id() const { return Sha256Hex(ToJson()); }

absl::Status DatasetIndex::Validate() const {
  if (bytes < 1 || bytes > kDatasetBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a data set has from 1 to ", kDatasetBytesMax, " bytes, not ", bytes));
  }
  if (chunk_sha256.size() != ChunkCount(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(bytes, " bytes need ", ChunkCount(bytes),
                                                   " hashes, not ", chunk_sha256.size()));
  }
  for (size_t chunk = 0; chunk < chunk_sha256.size(); ++chunk) {
    if (!IsSha256Hex(chunk_sha256[chunk])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the hash of chunk ", chunk, " is not 64 hexadecimal digits"));
    }
  }
  return absl::OkStatus();
}

uint64_t DatasetIndex::ChunkBytes(uint64_t chunk) const {
  LH_CHECK(chunk < chunk_sha256.size(), "chunk ", chunk, " of ", chunk_sha256.size());
  return std::min(kChunkBytes, bytes - chunk * kChunkBytes);
}

absl::StatusOr<uint64_t> DatasetBytes(const std::string& path) {
  LH_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(path));
  if (bytes == 0) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  if (bytes <= kDatasetBytesMax) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", bytes, " bytes, more than the ", kDatasetBytesMax, " (",
                   kDatasetBytesMax >> 30, " GiB) of the largest data set; train on a part of it"));
}

absl::StatusOr<DatasetIndex> IndexFile(const std::string& path, GoesOn goes_on) {
  DatasetIndex index;
  LH_ASSIGN_OR_RETURN(index.bytes, DatasetBytes(path));
  for (uint64_t offset = 0; offset < index.bytes; offset += kChunkBytes) {
    LH_RETURN_IF_ERROR(goes_on());
    const uint64_t length = std::min(kChunkBytes, index.bytes - offset);
    LH_ASSIGN_OR_RETURN(const std::string bytes, ReadFileRange(path, offset, length));
    index.chunk_sha256.push_back(Sha256Hex(bytes));
  }
  return index;
}

}  // namespace longhaul::data
