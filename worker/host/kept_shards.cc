#include "worker/host/kept_shards.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

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
constexpr char kListExtension[] = ".json";
constexpr char kDamagedExtension[] = ".damaged";  // behind the other

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
  for (const char* extension : {kListExtension, kDamagedExtension}) {
    LH_RETURN_IF_ERROR(ForgetOldest(extension, run));
  }
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> kept, AllKept());
  return store_.Prune(run, 0, kept);
}

absl::Status KeptShards::PutFetched(const checkpoint::Manifest& loaded, const std::string& sha256,
                                    absl::string_view bytes) {
  LH_RETURN_IF_ERROR(store_.PutShard(sha256, bytes));
  LH_ASSIGN_OR_RETURN(std::vector<std::string> kept, AllKept());
  for (const checkpoint::Shard& shard : loaded.shards) kept.push_back(shard.sha256);
  return store_.Prune(loaded.run, 0, kept);
}

std::string KeptShards::PathOf(const std::string& run) const {
  return absl::StrCat(folder_, "/kept/", run, kListExtension);
}

absl::StatusOr<std::vector<KeptShards::Entry>> KeptShards::Read(const std::string& run) const {
  const std::string path = PathOf(run);
  const auto text = ReadFile(path, kFileBytesMax);
  if (absl::IsNotFound(text.status())) return std::vector<Entry>();
  LH_RETURN_IF_ERROR(text.status());
  auto entries = Parse(*text);
  if (entries.ok()) return entries;
  const std::string aside = absl::StrCat(path, kDamagedExtension);
  LH_RETURN_IF_ERROR(RenameFile(path, aside));
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

absl::Status KeptShards::ForgetOldest(const std::string& extension, const std::string& run) const {
  const std::string folder = absl::StrCat(folder_, "/kept");
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> others;
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string path = files->path().string();
    if (files->path().extension() != extension || path == PathOf(run)) continue;
    others.emplace_back(files->last_write_time(error), path);
    if (error) break;
  }
  if (error) return ErrnoStatus(error.value(), "list", folder);
  std::sort(others.begin(), others.end(), std::greater<>());
  for (size_t i = kRunsKept - 1; i < others.size(); ++i) {
    std::filesystem::remove(others[i].second, error);
    if (error) return ErrnoStatus(error.value(), "remove", others[i].second);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> KeptShards::AllKept() const {
  std::vector<std::string> kept;
  std::error_code error;
  std::filesystem::directory_iterator files(absl::StrCat(folder_, "/kept"), error);
  if (error == std::errc::no_such_file_or_directory) return kept;
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (files->path().extension() != kListExtension) continue;
    LH_ASSIGN_OR_RETURN(const std::vector<Entry> entries, Read(files->path().stem().string()));
    for (const Entry& entry : entries) kept.push_back(entry.sha256);
  }
  if (error) return ErrnoStatus(error.value(), "list", absl::StrCat(folder_, "/kept"));
  return kept;
}

}  // namespace longhaul::worker
