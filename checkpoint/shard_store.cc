#include "checkpoint/shard_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longhaul::checkpoint {
namespace {

constexpr uint64_t kManifestBytesMax = uint64_t{64} << 20;
constexpr size_t kCheckBytes = size_t{1} << 20;  // of a shard in memory to see whether it is good

// Names of what lies in a folder, sorted; none if there is no folder.
absl::StatusOr<std::vector<std::string>> List(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), "list", folder);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What WriteFileAtomically leaves when the process dies within it.
bool IsTemporary(absl::string_view name) { return absl::StrContains(name, ".tmp-"); }

// "7.json" -> 7; nothing for any other name.
bool ParseManifestName(absl::string_view name, int64_t& step) {
  return absl::ConsumeSuffix(&name, ".json") && absl::SimpleAtoi(name, &step) && step >= 0 &&
         absl::StrCat(step) == name;
}

absl::Status Remove(const std::string& path) {
  if (std::remove(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, "remove", path);
}

// Of a shard's file that could not be read.
absl::Status NoShard(const absl::Status& read) {
  // Something else in a shard's place, a folder or a pipe; or it was cut short.
  const bool is_damaged = absl::IsInvalidArgument(read) || absl::IsOutOfRange(read);
  return is_damaged ? absl::DataLossError(read.message()) : read;
}

absl::Status DamagedShard(const std::string& path) {
  return absl::DataLossError(
      absl::StrCat("checkpoint shard ", path, " is damaged: its bytes do not have its hash"));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path, absl::string_view run,
                                      int64_t step) {
  LH_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kManifestBytesMax));
  LH_ASSIGN_OR_RETURN(Manifest manifest, ManifestFromJson(json));
  if (manifest.run != run || manifest.step != step) {
    return absl::DataLossError(
        absl::StrCat("is the manifest of run ", manifest.run, " at step ", manifest.step));
  }
  return manifest;
}

}  // namespace

ShardStore::ShardStore(std::string folder) : folder_(std::move(folder)) {}

std::string ShardStore::ShardPath(absl::string_view sha256) const {
  LH_CHECK(IsSha256Hex(sha256), sha256);
  return absl::StrCat(folder_, "/shards/", sha256);
}

std::string ShardStore::RunFolder(absl::string_view run) const {
  LH_CHECK(ValidateName("run name", run).ok(), run);
  return absl::StrCat(folder_, "/manifests/", run);
}

absl::Status ShardStore::PutShard(absl::string_view sha256, absl::string_view bytes) {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard's name is 64 hexadecimal digits");
  }
  if (Sha256Hex(bytes) != sha256) {
    return absl::DataLossError(absl::StrCat("the ", bytes.size(), " bytes given for shard ", sha256,
                                            " do not have its hash"));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto drop = [](absl::string_view) { return absl::OkStatus(); };
  if (ReadShard(sha256, kCheckBytes, drop).ok()) return absl::OkStatus();
  LH_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(folder_, "/shards")));
  return WriteFileAtomically(ShardPath(sha256), bytes);
}

absl::StatusOr<std::string> ShardStore::GetShard(absl::string_view sha256) const {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard's name is 64 hexadecimal digits");
  }
  const std::string path = ShardPath(sha256);
  absl::StatusOr<std::string> read = ReadFile(path, std::numeric_limits<uint64_t>::max());
  if (!read.ok()) return NoShard(read.status());
  if (Sha256Hex(*read) != sha256) return DamagedShard(path);
  return read;
}

absl::Status ShardStore::ReadShard(absl::string_view sha256, size_t piece_bytes,
                                   AppendPiece take) const {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard's name is 64 hexadecimal digits");
  }
  const std::string path = ShardPath(sha256);
  Sha256 hash;
  absl::Status taken;
  const absl::Status read = ReadFilePieces(path, piece_bytes, [&](absl::string_view piece) {
    hash.Update(piece);
    taken = take(piece);
    return taken;
  });
  LH_RETURN_IF_ERROR(taken);
  if (!read.ok()) return NoShard(read);
  return hash.FinishHex() == sha256 ? absl::OkStatus() : DamagedShard(path);
}

absl::StatusOr<uint64_t> ShardStore::ShardBytes(absl::string_view sha256) const {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard's name is 64 hexadecimal digits");
  }
  const absl::StatusOr<uint64_t> bytes = FileSize(ShardPath(sha256));
  if (!bytes.ok()) return NoShard(bytes.status());
  return bytes;
}

absl::StatusOr<std::vector<std::string>> ShardStore::UnnamedShards() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> damaged;
  LH_ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> named, NamedShards(&damaged));
  LH_ASSIGN_OR_RETURN(std::vector<std::string> names, List(absl::StrCat(folder_, "/shards")));
  std::erase_if(names, [&named](const std::string& name) {
    return !IsSha256Hex(name) || named.contains(name);
  });
  return names;
}

absl::Status ShardStore::Commit(const Manifest& manifest, const model::Graph& graph) {
  LH_RETURN_IF_ERROR(ValidateName("run name", manifest.run));
  // What cannot be read back must not become a checkpoint.
  LH_RETURN_IF_ERROR(ManifestFromJson(ToJson(manifest)).status());
  LH_RETURN_IF_ERROR(ValidateCoverage(manifest, graph));
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Shard& shard : manifest.shards) {
    const auto bytes = FileSize(ShardPath(shard.sha256));
    if (!bytes.ok() || *bytes != shard.bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("checkpoint of run ", manifest.run, " at step ", manifest.step, ": shard ",
                       shard.sha256, " of ", shard.bytes, " bytes is not in ", folder_));
    }
  }
  const std::string run_folder = RunFolder(manifest.run);
  const std::string path = absl::StrCat(run_folder, "/", manifest.step, ".json");
  const auto present = ReadManifest(path, manifest.run, manifest.step);
  if (present.ok() && present->epoch > manifest.epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint of run ", manifest.run, " at step ", manifest.step, " of epoch ",
                     ToString(manifest.epoch), ": epoch ", ToString(present->epoch),
                     " has already committed this step"));
  }
  LH_RETURN_IF_ERROR(MakeDirectories(run_folder));
  return WriteFileAtomically(path, ToJson(manifest));
}

absl::StatusOr<std::vector<Manifest>> ShardStore::Manifests(
    absl::string_view run, std::vector<std::string>* damaged) const {
  LH_RETURN_IF_ERROR(ValidateName("run name", run));
  std::lock_guard<std::mutex> lock(mutex_);
  return ReadManifests(run, damaged);
}

absl::StatusOr<std::vector<Manifest>> ShardStore::ReadManifests(
    absl::string_view run, std::vector<std::string>* damaged) const {
  const std::string run_folder = RunFolder(run);
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(run_folder));
  std::vector<Manifest> manifests;
  for (const std::string& name : names) {
    int64_t step = 0;
    if (!ParseManifestName(name, step)) continue;
    const std::string path = absl::StrCat(run_folder, "/", name);
    auto manifest = ReadManifest(path, run, step);
    if (manifest.ok()) {
      manifests.push_back(*std::move(manifest));
    } else {
      damaged->push_back(absl::StrCat(path, ": ", manifest.status().message()));
    }
  }
  std::sort(manifests.begin(), manifests.end(),
            [](const Manifest& a, const Manifest& b) { return a.step < b.step; });
  return manifests;
}

absl::Status ShardStore::RemoveOldManifests(absl::string_view run, int64_t before_step) {
  const std::string run_folder = RunFolder(run);
  // By name, so that damaged ones go too once they are too old to matter.
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(run_folder));
  bool some_removed = false;
  for (const std::string& name : names) {
    int64_t step = 0;
    if (!ParseManifestName(name, step) || step >= before_step) continue;
    LH_RETURN_IF_ERROR(Remove(absl::StrCat(run_folder, "/", name)));
    some_removed = true;
  }
  if (!some_removed) return absl::OkStatus();
  // Before any shard goes: a manifest must not come back without its shards.
  return SyncDirectory(run_folder);
}

absl::StatusOr<std::vector<std::string>> ShardStore::RunNames() const {
  LH_ASSIGN_OR_RETURN(std::vector<std::string> names, List(absl::StrCat(folder_, "/manifests")));
  std::erase_if(names,
                [](const std::string& name) { return !ValidateName("run name", name).ok(); });
  return names;
}

absl::StatusOr<std::vector<std::string>> ShardStore::Runs() const {
  std::lock_guard<std::mutex> lock(mutex_);
  LH_ASSIGN_OR_RETURN(std::vector<std::string> runs, RunNames());
  std::sort(runs.begin(), runs.end());
  return runs;
}

absl::StatusOr<absl::flat_hash_set<std::string>> ShardStore::NamedShards(
    std::vector<std::string>* damaged) const {
  absl::flat_hash_set<std::string> named;
  LH_ASSIGN_OR_RETURN(const std::vector<std::string> runs, RunNames());
  for (const std::string& run : runs) {
    LH_ASSIGN_OR_RETURN(const std::vector<Manifest> manifests, ReadManifests(run, damaged));
    for (const Manifest& manifest : manifests) {
      for (const Shard& shard : manifest.shards) named.insert(shard.sha256);
    }
  }
  return named;
}

absl::Status ShardStore::Prune(absl::string_view run, int64_t before_step,
                               const std::vector<std::string>& protected_shards) {
  LH_RETURN_IF_ERROR(ValidateName("run name", run));
  std::lock_guard<std::mutex> lock(mutex_);
  LH_RETURN_IF_ERROR(RemoveOldManifests(run, before_step));
  std::vector<std::string> damaged;
  LH_ASSIGN_OR_RETURN(auto needed, NamedShards(&damaged));
  if (!damaged.empty()) {
    return absl::DataLossError(
        absl::StrCat("no shard is removed while a manifest is damaged; repair or remove ",
                     absl::StrJoin(damaged, ", ")));
  }
  needed.insert(protected_shards.begin(), protected_shards.end());
  for (const std::string& folder : {absl::StrCat(folder_, "/shards"), RunFolder(run)}) {
    LH_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(folder));
    for (const std::string& name : names) {
      // Nobody writes now, so that temporary files are what dead processes left.
      if (IsTemporary(name) || (IsSha256Hex(name) && !needed.contains(name))) {
        LH_RETURN_IF_ERROR(Remove(absl::StrCat(folder, "/", name)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace longhaul::checkpoint
