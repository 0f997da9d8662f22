#include "daemon/rpc/upload_staging.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

// A client that sends nothing for so long has gone, or must begin again.
constexpr absl::Duration kIdleMax = absl::Minutes(10);

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? ErrnoStatus(error.value(), "remove", path) : absl::OkStatus();
}

}  // namespace

UploadStaging::UploadStaging(std::string folder, data::DatasetStore& store, Clock& clock,
                             size_t uploads_max)
    : folder_(std::move(folder)), store_(store), clock_(clock), uploads_max_(uploads_max) {}

absl::Status UploadStaging::Clear() { return RemoveFolder(folder_); }

absl::StatusOr<std::vector<uint64_t>> UploadStaging::Begin(const data::DatasetIndex& index) {
  LH_RETURN_IF_ERROR(index.Validate());
  const std::string id = index.Id();
  if (store_.Verify(id).ok()) return std::vector<uint64_t>();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!uploads_.contains(id) && uploads_.size() >= uploads_max_) {
      LH_RETURN_IF_ERROR(MakeRoomLocked());
    }
    LH_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(folder_, "/", id)));
    uploads_[id] = {std::make_shared<const data::DatasetIndex>(index), clock_.Now()};
  }
  std::vector<uint64_t> missing;
  for (uint64_t chunk = 0; chunk < index.chunk_sha256.size(); ++chunk) {
    if (!FileSize(ChunkPath(id, chunk)).ok()) missing.push_back(chunk);
  }
  return missing;
}

absl::Status UploadStaging::MakeRoomLocked() {
  const auto idlest =
      std::min_element(uploads_.begin(), uploads_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  if (idlest == uploads_.end() || clock_.Now() - idlest->second.used < kIdleMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(uploads_.size(),
                     " data sets are being uploaded, as many as may be; try again when some are "
                     "finished, or ",
                     absl::FormatDuration(kIdleMax), " after the last was abandoned"));
  }
  const std::string id = idlest->first;
  uploads_.erase(idlest);
  return RemoveFolder(absl::StrCat(folder_, "/", id));
}

absl::Status UploadStaging::Put(const std::string& id, uint64_t chunk, absl::string_view bytes) {
  LH_ASSIGN_OR_RETURN(const SharedIndex index, Find(id));
  if (chunk >= index->chunk_sha256.size()) {
    return absl::OutOfRangeError(absl::StrCat("data set ", id, " has ", index->chunk_sha256.size(),
                                              " chunks; there is no chunk ", chunk));
  }
  if (bytes.size() != index->ChunkBytes(chunk) || Sha256Hex(bytes) != index->chunk_sha256[chunk]) {
    return absl::DataLossError(absl::StrCat("chunk ", chunk, " of data set ", id,
                                            " arrived other than its index says; did the file "
                                            "change? Upload it again"));
  }
  return WriteFileAtomically(ChunkPath(id, chunk), bytes);
}

absl::Status UploadStaging::Finish(const std::string& id) {
  if (IsSha256Hex(id) && store_.Verify(id).ok()) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const SharedIndex index, Find(id));
  const auto fetch = [this, &id, &index](uint64_t chunk) -> absl::StatusOr<std::string> {
    LH_RETURN_IF_ERROR(Find(id).status());
    absl::StatusOr<std::string> bytes = ReadFile(ChunkPath(id, chunk), index->ChunkBytes(chunk));
    if (absl::IsNotFound(bytes.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("chunk ", chunk, " of data set ", id, " was not uploaded"));
    }
    return bytes;
  };
  LH_RETURN_IF_ERROR(store_.Fill(*index, fetch));
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_.erase(id);
  return RemoveFolder(absl::StrCat(folder_, "/", id));
}

absl::StatusOr<UploadStaging::SharedIndex> UploadStaging::Find(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = uploads_.find(id);
  if (found != uploads_.end()) {
    found->second.used = clock_.Now();
    return found->second.index;
  }
  return absl::NotFoundError(
      "the upload of this data set was not begun, or it was dropped since because it was idle or "
      "the coordinator was restarted; begin it again");
}

std::string UploadStaging::ChunkPath(const std::string& id, uint64_t chunk) const {
  return absl::StrCat(folder_, "/", id, "/", chunk);
}

}  // namespace longhaul::daemon
