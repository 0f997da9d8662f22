#include "daemon/cluster_token.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kTokenSizeMin = 16;
constexpr size_t kTokenSizeMax = 1024;

absl::Status CheckOwnerAndMode(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return ErrnoStatus(errno, "open cluster token", path);
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster token '", path, "' is not a regular file"));
  }
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat("cluster token '", path, "' belongs to user ",
                                                    file.st_uid, "; it must belong to this user (",
                                                    geteuid(), ") or to root"));
  }
  if ((file.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "cluster token '%s' has mode %04o, so that other users may read or change it; run: chmod "
        "0600 '%s'",
        path, file.st_mode & 07777, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadClusterToken(const std::string& path) {
  LH_RETURN_IF_ERROR(CheckOwnerAndMode(path));
  LH_ASSIGN_OR_RETURN(std::string token, ReadFile(path, 2 * kTokenSizeMax));
  absl::StripAsciiWhitespace(&token);
  for (const char c : token) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cluster token '", path, "' holds other characters than printable ASCII without spaces"));
    }
  }
  if (token.size() < kTokenSizeMin || token.size() > kTokenSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat("cluster token '", path, "' has ", token.size(),
                                                   " characters; it needs ", kTokenSizeMin, " to ",
                                                   kTokenSizeMax));
  }
  return token;
}

}  // namespace longhaul::daemon
