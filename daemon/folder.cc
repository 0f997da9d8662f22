#include "daemon/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kIdentityBytesMax = 4096;
constexpr int64_t kIdentitySchema = 1;

std::string NameFromHost() {
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) return "worker";
  std::string name(host.data());
  name = name.substr(0, std::min<size_t>(name.find('.'), 63));
  return ValidateName("node name", name).ok() ? name : "worker";
}

absl::StatusOr<Identity> ParseIdentity(const std::string& text) {
  LH_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kIdentityBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(json, kIdentitySchema));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(json, {"schema", "name", "incarnation"}));
  Identity identity;
  LH_ASSIGN_OR_RETURN(identity.name, JsonText(json, "name"));
  LH_RETURN_IF_ERROR(ValidateName("node name", identity.name));
  LH_ASSIGN_OR_RETURN(const int64_t incarnation, JsonWhole(json, "incarnation", 0, INT64_MAX - 1));
  identity.incarnation = static_cast<uint64_t>(incarnation);
  return identity;
}

}  // namespace

absl::Status CheckFolder(const std::string& folder) {
  // The nearest folder that is there: the rest can be made in it if anything can.
  std::filesystem::path there = std::filesystem::path(folder).lexically_normal();
  struct stat found;
  while (stat(there.empty() ? "." : there.c_str(), &found) != 0) {
    if (errno != ENOENT || there.empty()) {
      return absl::InvalidArgumentError(ErrnoStatus(errno, "use folder", folder).message());
    }
    there = there.parent_path();
  }
  if (!S_ISDIR(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot use folder ", folder, ": ", there.string(), " is not a folder"));
  }
  std::string probe = (there / ".longhaul-check-XXXXXX").string();
  if (mkdtemp(probe.data()) == nullptr) {
    const absl::Status status = ErrnoStatus(errno, "use folder", folder);
    return absl::IsResourceExhausted(status) ? status
                                             : absl::InvalidArgumentError(status.message());
  }
  return rmdir(probe.c_str()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "remove", probe);
}

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  LH_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string path = absl::StrCat(folder, "/lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return ErrnoStatus(errno, "open", path);
  FolderLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", path);
    std::string holder = ReadFile(path, 64).value_or("");
    absl::StripAsciiWhitespace(&holder);
    return absl::FailedPreconditionError(
        absl::StrCat("folder '", folder, "' is in use by another longhauld",
                     holder.empty() ? "" : absl::StrCat(" (process ", holder, ")"),
                     "; stop it, or give this one a folder of its own"));
  }
  const std::string holder = absl::StrCat(getpid(), "\n");
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return ErrnoStatus(errno, "write", path);
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

absl::StatusOr<Identity> TakeIdentity(const std::string& folder,
                                      const std::string& configured_name) {
  const std::string path = absl::StrCat(folder, "/identity.json");
  Identity identity;
  absl::StatusOr<std::string> stored = ReadFile(path, kIdentityBytesMax);
  if (stored.ok()) {
    absl::StatusOr<Identity> parsed = ParseIdentity(*stored);
    if (!parsed.ok()) {
      return Annotate(parsed.status(), absl::StrCat("identity file '", path, "' is damaged"));
    }
    identity = *std::move(parsed);
  } else if (!absl::IsNotFound(stored.status())) {
    return stored.status();
  }
  if (!identity.name.empty() && !configured_name.empty() && identity.name != configured_name) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder '", folder, "' belongs to node '", identity.name, "', but the configuration says '",
        configured_name, "'; give each node a folder of its own, or remove '", path,
        "' to hand the folder over"));
  }
  if (identity.name.empty()) identity.name = configured_name;
  if (identity.name.empty()) identity.name = NameFromHost();
  ++identity.incarnation;
  const Json json = {
      {"schema", kIdentitySchema}, {"name", identity.name}, {"incarnation", identity.incarnation}};
  LH_RETURN_IF_ERROR(WriteFileAtomically(path, json.dump(2) + "\n"));
  return identity;
}

}  // namespace longhaul::daemon
