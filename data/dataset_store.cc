#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/dataset.h"

namespace longhaul::data {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The file of a download: chunks at their places, in any state.
class PartFile {
 public:
  static absl::StatusOr<PartFile> Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return ErrnoStatus(errno, "open", path);
    struct stat info;
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file; remove it"));
    }
    return PartFile(path, fd);
  }
  PartFile(PartFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Whether the chunk is there and is what the index says.
  bool Holds(const DatasetIndex& index, uint64_t chunk) const {
    const auto bytes = ReadFileRange(path_, chunk * kChunkBytes, index.ChunkBytes(chunk));
    return bytes.ok() && Sha256Hex(*bytes) == index.chunk_sha256[chunk];
  }

  absl::Status Write(uint64_t chunk, absl::string_view bytes) {
    uint64_t offset = chunk * kChunkBytes;
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, "write", path_);
      bytes.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  // Cuts off what a longer file left, then makes everything durable.
  absl::Status Finish(uint64_t bytes) {
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
      return ErrnoStatus(errno, "truncate", path_);
    }
    if (::fsync(fd_) != 0) return ErrnoStatus(errno, "fsync", path_);
    const int result = ::close(std::exchange(fd_, -1));
    return result == 0 ? absl::OkStatus() : ErrnoStatus(errno, "close", path_);
  }

 private:
  PartFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

absl::Status CheckChunk(const DatasetIndex& index, uint64_t chunk, absl::string_view bytes,
                        absl::string_view source) {
  if (bytes.size() != index.ChunkBytes(chunk)) {
    return absl::DataLossError(absl::StrCat("chunk ", chunk, " from ", source, " has ",
                                            bytes.size(), " bytes instead of ",
                                            index.ChunkBytes(chunk)));
  }
  if (Sha256Hex(bytes) != index.chunk_sha256[chunk]) {
    return absl::DataLossError(
        absl::StrCat("chunk ", chunk, " from ", source, " does not have its hash"));
  }
  return absl::OkStatus();
}

}  // namespace

DatasetStore::DatasetStore(std::string folder) : folder_(std::move(folder)) {}

bool DatasetStore::Has(absl::string_view id) const {
  const auto index = CachedIndex(id);
  if (!index.ok()) return false;
  const auto bytes = FileSize(DataPath(id));
  return bytes.ok() && *bytes == (*index)->bytes;
}

std::string DatasetStore::StampOf(absl::string_view id) const {
  struct stat info;
  if (::stat(DataPath(id).c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_ino, " ", info.st_size, " ", info.st_ctim.tv_sec, " ",
                      info.st_ctim.tv_nsec);
}

absl::Status DatasetStore::Verify(absl::string_view id, GoesOn goes_on) const {
  LH_RETURN_IF_ERROR(CachedIndex(id).status());
  const std::string path = DataPath(id), stamp = StampOf(id);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto verified = verified_.find(id);
    if (verified != verified_.end() && verified->second == stamp) return absl::OkStatus();
  }
  if (!Has(id))
    return absl::DataLossError(absl::StrCat(path, " is damaged: it has another length"));
  absl::Status ended;
  const auto stored = IndexFile(path, [&] { return ended = goes_on(); });
  if (!ended.ok()) return ended;
  if (!stored.ok() || stored->Id() != id) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: it is not what its id says"));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  verified_[std::string(id)] = stamp;
  return absl::OkStatus();
}

std::string DatasetStore::DataPath(absl::string_view id) const {
  LH_CHECK(IsSha256Hex(id), "data set id ", id);
  return absl::StrCat(folder_, "/", id, ".data");
}

absl::StatusOr<DatasetIndex> DatasetStore::Index(absl::string_view id) const {
  LH_ASSIGN_OR_RETURN(const SharedIndex index, CachedIndex(id));
  return *index;
}

absl::StatusOr<DatasetStore::SharedIndex> DatasetStore::CachedIndex(absl::string_view id) const {
  if (!IsSha256Hex(id)) {
    return absl::InvalidArgumentError("a data set's id is 64 hexadecimal digits");
  }
  if (!Exists(absl::StrCat(folder_, "/", id, ".json")) || !Exists(DataPath(id))) {
    return absl::NotFoundError(absl::StrCat("no data set ", id, " in ", folder_));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = indexes_.find(id); found != indexes_.end()) return found->second;
  const std::string path = absl::StrCat(folder_, "/", id, ".json");
  LH_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kIndexBytesMax));
  auto index = DatasetIndex::FromJson(json);
  if (!index.ok() || index->Id() != id) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: it is not the index of its id"));
  }
  auto shared = std::make_shared<const DatasetIndex>(*std::move(index));
  indexes_.emplace(id, shared);
  return shared;
}

absl::Status DatasetStore::Fill(const DatasetIndex& index, FetchChunk fetch, GoesOn goes_on) {
  LH_RETURN_IF_ERROR(Annotate(index.Validate(), "data set index"));
  const std::string id = index.Id();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!filling_.insert(id).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("the data set ", id, " is already being fetched"));
    }
  }
  absl::Cleanup done = [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    filling_.erase(id);
  };
  absl::Status ended;
  const auto still = [&] { return ended = goes_on(); };
  if (Verify(id, still).ok()) return absl::OkStatus();
  LH_RETURN_IF_ERROR(ended);
  return FillAlone(index, id, fetch, goes_on);
}

absl::Status DatasetStore::FillAlone(const DatasetIndex& index, const std::string& id,
                                     FetchChunk fetch, GoesOn goes_on) {
  LH_RETURN_IF_ERROR(MakeDirectories(folder_));
  const std::string part_path = absl::StrCat(folder_, "/", id, ".part");
  // Complete data without its index: the process ended between the last two steps.
  if (Exists(DataPath(id))) LH_RETURN_IF_ERROR(RenameFile(DataPath(id), part_path));
  LH_ASSIGN_OR_RETURN(PartFile part, PartFile::Open(part_path));
  for (uint64_t chunk = 0; chunk < index.chunk_sha256.size(); ++chunk) {
    LH_RETURN_IF_ERROR(goes_on());
    if (part.Holds(index, chunk)) continue;
    LH_ASSIGN_OR_RETURN(const std::string bytes, fetch(chunk));
    LH_RETURN_IF_ERROR(CheckChunk(index, chunk, bytes, "its source"));
    LH_RETURN_IF_ERROR(part.Write(chunk, bytes));
  }
  LH_RETURN_IF_ERROR(part.Finish(index.bytes));
  LH_RETURN_IF_ERROR(RenameFile(part_path, DataPath(id)));
  // Also makes the folder's entries durable.
  return WriteFileAtomically(absl::StrCat(folder_, "/", id, ".json"), index.ToJson());
}

absl::StatusOr<std::string> DatasetStore::ReadChunk(absl::string_view id, uint64_t chunk) const {
  LH_ASSIGN_OR_RETURN(const SharedIndex index, CachedIndex(id));
  if (chunk >= index->chunk_sha256.size()) {
    return absl::OutOfRangeError(absl::StrCat("data set ", id, " has ", index->chunk_sha256.size(),
                                              " chunks, not chunk ", chunk));
  }
  const std::string path = DataPath(id);
  auto bytes = ReadFileRange(path, chunk * kChunkBytes, index->ChunkBytes(chunk));
  if (!bytes.ok() && !absl::IsOutOfRange(bytes.status())) return bytes;
  const absl::Status good = bytes.ok() ? CheckChunk(*index, chunk, *bytes, path)
                                       : absl::DataLossError(bytes.status().message());
  if (good.ok()) return bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  verified_.erase(std::string(id));
  return good;
}

}  // namespace longhaul::data
