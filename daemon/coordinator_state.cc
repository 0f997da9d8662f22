#include "daemon/coordinator_state.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kFileBytesMax = 4096;
constexpr int64_t kSchema = 1;

absl::StatusOr<CoordinatorSelf> Parse(const std::string& text) {
  LH_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kFileBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(json, kSchema));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(json, {"schema", "term", "token_secret"}));
  CoordinatorSelf self;
  LH_ASSIGN_OR_RETURN(const int64_t term, JsonWhole(json, "term", 1, UINT32_MAX - 1));
  self.term = static_cast<uint32_t>(term);
  LH_ASSIGN_OR_RETURN(self.token_secret, JsonText(json, "token_secret"));
  if (!IsSha256Hex(self.token_secret)) {
    return absl::InvalidArgumentError("'token_secret' is not 64 hexadecimal digits");
  }
  return self;
}

absl::StatusOr<std::string> DrawSecret() {
  std::array<char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "draw", "random bytes");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace

absl::StatusOr<CoordinatorSelf> TakeCoordinatorSelf(const std::string& folder,
                                                    const std::string& journal_path) {
  const std::string path = absl::StrCat(folder, "/coordinator.json");
  CoordinatorSelf self;
  const absl::StatusOr<std::string> stored = ReadFile(path, kFileBytesMax);
  if (stored.ok()) {
    absl::StatusOr<CoordinatorSelf> parsed = Parse(*stored);
    if (!parsed.ok()) {
      return Annotate(parsed.status(), absl::StrCat("file '", path, "' is damaged"));
    }
    self = *std::move(parsed);
    const absl::Status journal = FileSize(journal_path).status();
    if (journal.ok()) return self;
    if (!absl::IsNotFound(journal)) return journal;
    ++self.term;
  } else if (absl::IsNotFound(stored.status())) {
    LH_ASSIGN_OR_RETURN(self.token_secret, DrawSecret());
  } else {
    return stored.status();
  }
  const Json json = {{"schema", kSchema}, {"term", self.term}, {"token_secret", self.token_secret}};
  LH_RETURN_IF_ERROR(WriteFileAtomically(path, json.dump(2) + "\n"));
  return self;
}

}  // namespace longhaul::daemon
