#include "worker/host/kept_shards.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kFileBytesMax = 1 << 20;
constexpr int64_t kStepMax = int64_t{1} << 50;

}  // namespace

absl::Status KeptShards::Put(const std::string& run, int64_t step, const std::string& sha256,
                             absl::string_view bytes) {
  LH_RETURN_IF_ERROR(store_.PutShard(sha256, bytes));
  LH_ASSIGN_OR_RETURN(std::vector<Entry> entries, Read(run));
  const auto overtaken = [&](const Entry& entry) { return entry.step >= step; };
  entries.erase(std::remove_if(entries.begin(), entries.end(), overtaken), entries.end());
  entries.push_back({step, sha256});
  if (entries.size() > kStepsKept) entries.erase(entries.begin(), entries.end() - kStepsKept);
  LH_RETURN_IF_ERROR(Write(run, entries));
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> kept, AllKept());
  return store_.Prune(run, 0, kept);
}

std::string KeptShards::PathOf(const std::string& run) const {
  return absl::StrCat(folder_, "/kept/", run, ".json");
}

absl::StatusOr<std::vector<KeptShards::Entry>> KeptShards::Read(const std::string& run) const {
  const std::string path = PathOf(run);
  const auto text = ReadFile(path, kFileBytesMax);
  if (absl::IsNotFound(text.status())) return std::vector<Entry>();
  LH_RETURN_IF_ERROR(text.status());
  auto entries = Parse(*text);
  if (entries.ok()) return entries;
  const std::string aside = absl::StrCat(path, ".damaged");
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error) return ErrnoStatus(error.value(), "rename", path);
  say_(absl::StrCat("the list of the shards that run ", run, " keeps on this node is damaged (",
                    entries.status().message(), "); it is moved to ", aside,
                    ", and a new one begins"));
  return std::vector<Entry>();
}

absl::StatusOr<std::vector<KeptShards::Entry>> KeptShards::Parse(const std::string& text) {
  LH_ASSIGN_OR_RETURN(const Json root, ParseJson(text, kFileBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(root, kSchema));
  LH_ASSIGN_OR_RETURN(const Json* const shards, JsonArray(root, "shards"));
  std::vector<Entry> entries;
  for (const Json& item : *shards) {
    Entry entry;
    LH_ASSIGN_OR_RETURN(entry.step, JsonWhole(item, "step", 0, kStepMax));
    LH_ASSIGN_OR_RETURN(entry.sha256, JsonText(item, "sha256"));
    if (!IsSha256Hex(entry.sha256)) return absl::DataLossError("a shard's name is no hash");
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::Status KeptShards::Write(const std::string& run, const std::vector<Entry>& entries) const {
  Json shards = Json::array();
  for (const Entry& entry : entries) {
    shards.push_back({{"step", entry.step}, {"sha256", entry.sha256}});
  }
  LH_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(folder_, "/kept")));
  return WriteFileAtomically(PathOf(run),
                             Json{{"schema", kSchema}, {"shards", std::move(shards)}}.dump());
}

absl::StatusOr<std::vector<std::string>> KeptShards::AllKept() const {
  std::vector<std::string> kept;
  std::error_code error;
  std::filesystem::directory_iterator files(absl::StrCat(folder_, "/kept"), error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (files->path().extension() != ".json") continue;
    LH_ASSIGN_OR_RETURN(const std::vector<Entry> entries, Read(files->path().stem().string()));
    for (const Entry& entry : entries) kept.push_back(entry.sha256);
  }
  if (error) return ErrnoStatus(error.value(), "list", absl::StrCat(folder_, "/kept"));
  return kept;
}

}  // namespace longhaul::worker
