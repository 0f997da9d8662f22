#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file_pieces.h"
#include "base/status_macros.h"

namespace longhaul {
namespace {

absl::Status ReadExactly(int fd, const std::string& path, uint64_t offset, std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read", path);
    if (n == 0) {
      return absl::OutOfRangeError(
          absl::StrCat(path, " ends at byte ", offset + done, ", before ", offset + bytes.size()));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, const std::string& path, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path) {
  const std::string message =
      absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case ENOTDIR:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
    case EINVAL:
    case ENXIO:
      return absl::InvalidArgumentError(message);
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
    case ECONNREFUSED:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<int> OpenRegularFile(const std::string& path, uint64_t& size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return ErrnoStatus(error, "stat", path);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  size = static_cast<uint64_t>(info.st_size);
  return fd;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t size_max) {
  uint64_t size = 0;
  LH_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, size));
  absl::Cleanup close = [fd] { ::close(fd); };
  if (size > size_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", size, " bytes, more than the ", size_max, " allowed here"));
  }
  std::string bytes(size, '\0');
  LH_RETURN_IF_ERROR(ReadExactly(fd, path, 0, bytes));
  return bytes;
}

absl::StatusOr<std::string> ReadFileRange(const std::string& path, uint64_t offset,
                                          uint64_t length) {
  uint64_t size = 0;
  LH_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, size));
  absl::Cleanup close = [fd] { ::close(fd); };
  if (offset > size || length > size - offset) {
    return absl::OutOfRangeError(absl::StrCat(path, " has ", size, " bytes; bytes ", offset, " to ",
                                              offset, "+", length, " are not there"));
  }
  std::string bytes(length, '\0');
  LH_RETURN_IF_ERROR(ReadExactly(fd, path, offset, bytes));
  return bytes;
}

absl::Status ReadFilePieces(const std::string& path, size_t piece_bytes, AppendPiece take) {
  uint64_t size = 0;
  LH_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, size));
  absl::Cleanup close = [fd] { ::close(fd); };
  std::string piece;
  for (uint64_t offset = 0; offset < size; offset += piece.size()) {
    piece.resize(std::min<uint64_t>(piece_bytes, size - offset));
    LH_RETURN_IF_ERROR(ReadExactly(fd, path, offset, piece));
    LH_RETURN_IF_ERROR(take(piece));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  uint64_t size = 0;
  LH_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, size));
  ::close(fd);
  return size;
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("rename ", from, " to"), to);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  return WritePiecesAtomically(path, [bytes](AppendPiece append) { return append(bytes); });
}

absl::Status WritePiecesAtomically(const std::string& path, const FilePieces& pieces,
                                   FileAccess access) {
  static std::atomic<uint64_t> serial{0};
  const std::string temporary = absl::StrCat(path, ".tmp-", ::getpid(), "-", serial.fetch_add(1));
  const mode_t mode = access == FileAccess::kOwner ? 0600 : 0666;
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return ErrnoStatus(errno, "create", temporary);
  absl::Status status =
      pieces([&](absl::string_view piece) { return WriteAll(fd, temporary, piece); });
  if (status.ok() && ::fsync(fd) != 0) status = ErrnoStatus(errno, "fsync", temporary);
  if (::close(fd) != 0 && status.ok()) status = ErrnoStatus(errno, "close", temporary);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "rename to", path);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(folder.empty() ? "." : folder);
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(error, "fsync", path);
}

absl::Status MakeDirectories(const std::string& path) {
  std::filesystem::path partial;
  for (const auto& part : std::filesystem::path(path)) {
    partial /= part;
    if (partial.empty() || partial == "/") continue;
    if (::mkdir(partial.c_str(), 0700) == 0 || errno == EEXIST) continue;
    return ErrnoStatus(errno, "create folder", partial.string());
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a folder"));
  }
  return absl::OkStatus();
}

}  // namespace longhaul
