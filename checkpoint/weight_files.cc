#include "checkpoint/weight_files.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "checkpoint/hugging_face_layout.h"

namespace longhaul::checkpoint {
namespace {

constexpr size_t kIndexBytesMax = size_t{64} << 20;
constexpr size_t kFilesMax = 4096;
constexpr size_t kNameBytesMax = 255;

std::string PathOf(const WeightFiles& files, absl::string_view name) {
  return absl::StrCat(files.directory, "/", name);
}

// A plain name, so that an index cannot make us read elsewhere.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
         absl::EndsWith(name, ".safetensors");
}

absl::Status ReadIndex(absl::string_view text, WeightFiles& files) {
  LH_ASSIGN_OR_RETURN(const Json root, ParseJson(text, kIndexBytesMax));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(root, {"metadata", "weight_map"}));
  LH_ASSIGN_OR_RETURN(const Json* map, JsonObject(root, "weight_map"));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !IsPlainName(file.get<std::string>())) {
      return absl::InvalidArgumentError(
          absl::StrCat("'weight_map.", tensor, "' must name a .safetensors file beside it, not ",
                       file.dump(-1, ' ', false, Json::error_handler_t::replace)));
    }
    files.index[tensor] = file.get<std::string>();
    names.insert(file.get<std::string>());
  }
  if (names.empty() || names.size() > kFilesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("'weight_map' must name 1 to ", kFilesMax, " files, not ", names.size()));
  }
  files.names.assign(names.begin(), names.end());
  return absl::OkStatus();
}

// The file holds those tensors that the index says.
absl::Status CheckIndex(const WeightFiles& files, const std::string& name,
                        const SafetensorsFile& file) {
  if (files.index.empty()) return absl::OkStatus();
  for (const TensorView& tensor : file.tensors) {
    const auto found = files.index.find(tensor.name);
    if (found != files.index.end() && found->second == name) continue;
    return absl::InvalidArgumentError(absl::StrCat("holds the tensor '", tensor.name, "', which ",
                                                   kIndexFile, " does not say is here"));
  }
  absl::flat_hash_set<absl::string_view> held;  // an index may name very many tensors
  for (const TensorView& tensor : file.tensors) held.insert(tensor.name);
  for (const auto& [tensor, holder] : files.index) {
    if (holder != name || held.contains(tensor)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("lacks the tensor '", tensor, "', which ", kIndexFile, " says is here"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WeightFiles> FindWeightFiles(const std::string& directory) {
  WeightFiles files;
  files.directory = directory;
  const absl::StatusOr<uint64_t> single = FileSize(PathOf(files, kWeightsFile));
  if (single.ok()) {
    files.names = {kWeightsFile};
    files.bytes = *single;
    return files;
  }
  if (!absl::IsNotFound(single.status())) return single.status();
  const std::string index_path = PathOf(files, kIndexFile);
  const absl::StatusOr<std::string> index = ReadFile(index_path, kIndexBytesMax);
  if (absl::IsNotFound(index.status())) {
    return absl::NotFoundError(absl::StrCat(PathOf(files, kWeightsFile), ": there is no such file",
                                            ", and no ", kIndexFile, " either"));
  }
  if (!index.ok()) return index.status();
  LH_RETURN_IF_ERROR(Annotate(ReadIndex(*index, files), index_path));
  for (const std::string& name : files.names) {
    LH_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(PathOf(files, name)));
    files.bytes += bytes;
  }
  return files;
}

absl::Status ReadWeightFiles(const WeightFiles& files,
                             absl::FunctionRef<absl::Status(const TensorView&)> take) {
  for (const std::string& name : files.names) {
    const std::string path = PathOf(files, name);
    LH_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadFile(path, std::numeric_limits<uint64_t>::max()));
    const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(bytes);
    // Of a shard of ours this would be lost data; here it is what somebody gave us.
    if (!file.ok()) return Annotate(absl::InvalidArgumentError(file.status().message()), path);
    LH_RETURN_IF_ERROR(Annotate(CheckIndex(files, name, *file), path));
    for (const TensorView& tensor : file->tensors) {
      LH_RETURN_IF_ERROR(Annotate(take(tensor), path));
    }
  }
  return absl::OkStatus();
}

}  // namespace longhaul::checkpoint
