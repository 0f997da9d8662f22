#include "data/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace longhaul::data {

absl::StatusOr<Mapping> Mapping::Open(const std::string& path) {
  uint64_t size = 0;
  LH_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, size));
  absl::Cleanup close = [fd] { ::close(fd); };
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  return Mapping(static_cast<const char*>(start), size);
}

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(const_cast<char*>(start_), size_);
}

}  // namespace longhaul::data
