// Files as whole values, written so that a crash leaves the old file or the new one, never half.
#ifndef LONGHAUL_BASE_FILE_H_
#define LONGHAUL_BASE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul {

// Every error names the path and the operating system's reason. NotFound, PermissionDenied,
// ResourceExhausted (disk full, quota, file too long) and InvalidArgument (not a path that can
// work) have their own code; Unavailable is only what passes by itself; all else is Internal.
absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path);

// A descriptor to read `path` with, which the caller closes, and the file's size. InvalidArgument
// at once if it is not a regular file: a pipe or a device is never waited for.
absl::StatusOr<int> OpenRegularFile(const std::string& path, uint64_t& size);

// The whole file; InvalidArgument if it is longer than `size_max` or not a regular file.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t size_max);

// `length` bytes from `offset`; OutOfRange if the file is shorter.
absl::StatusOr<std::string> ReadFileRange(const std::string& path, uint64_t offset,
                                          uint64_t length);

absl::StatusOr<uint64_t> FileSize(const std::string& path);

// Temporary file beside `path` (mode 0600), write, fsync, rename, fsync of the folder. On an error
// an old `path` is untouched, unless only the last failed: the new one is there then.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

// Within one file system, over what is at `to`; durable once its folder is synced.
absl::Status RenameFile(const std::string& from, const std::string& to);
// Makes what was created, renamed or removed directly in a folder durable.
absl::Status SyncDirectory(const std::string& path);

// Like `mkdir -p`, mode 0700 for what it creates.
absl::Status MakeDirectories(const std::string& path);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_FILE_H_
