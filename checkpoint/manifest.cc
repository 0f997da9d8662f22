#include "checkpoint/manifest.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace longhaul::checkpoint {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kJsonBytesMax = size_t{64} << 20;
constexpr int64_t kUint32Max = std::numeric_limits<uint32_t>::max();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

absl::StatusOr<Shard> ShardFromValue(const Json& value) {
  LH_RETURN_IF_ERROR(JsonOnlyKeys(value, {"sha256", "bytes", "parameters"}));
  Shard shard;
  LH_ASSIGN_OR_RETURN(shard.sha256, JsonText(value, "sha256"));
  if (!IsSha256Hex(shard.sha256)) {
    return absl::InvalidArgumentError("'sha256' is not 64 hexadecimal digits");
  }
  LH_ASSIGN_OR_RETURN(const int64_t bytes, JsonWhole(value, "bytes", 0, kInt64Max));
  shard.bytes = static_cast<uint64_t>(bytes);
  LH_ASSIGN_OR_RETURN(const Json* parameters, JsonArray(value, "parameters"));
  for (const Json& name : *parameters) {
    if (!name.is_string()) return absl::InvalidArgumentError("'parameters' is not a list of text");
    shard.parameters.push_back(name.get<std::string>());
  }
  return shard;
}

absl::StatusOr<Manifest> FromValue(const Json& root) {
  LH_RETURN_IF_ERROR(JsonSchema(root, kSchema));
  LH_RETURN_IF_ERROR(
      JsonOnlyKeys(root, {"schema", "run", "epoch", "step", "tokens", "numeric_class", "shards"}));
  Manifest manifest;
  LH_ASSIGN_OR_RETURN(manifest.run, JsonText(root, "run"));
  LH_RETURN_IF_ERROR(ValidateName("run name", manifest.run));
  LH_ASSIGN_OR_RETURN(const Json* epoch, JsonObject(root, "epoch"));
  LH_RETURN_IF_ERROR(JsonOnlyKeys(*epoch, {"term", "number"}));
  LH_ASSIGN_OR_RETURN(const int64_t term, JsonWhole(*epoch, "term", 0, kUint32Max));
  LH_ASSIGN_OR_RETURN(const int64_t number, JsonWhole(*epoch, "number", 0, kUint32Max));
  manifest.epoch = {static_cast<uint32_t>(term), static_cast<uint32_t>(number)};
  LH_ASSIGN_OR_RETURN(manifest.step, JsonWhole(root, "step", 0, kInt64Max));
  LH_ASSIGN_OR_RETURN(manifest.tokens, JsonWhole(root, "tokens", 0, kInt64Max));
  LH_ASSIGN_OR_RETURN(manifest.numeric_class, JsonText(root, "numeric_class"));
  LH_ASSIGN_OR_RETURN(const Json* shards, JsonArray(root, "shards"));
  for (const Json& value : *shards) {
    auto shard = ShardFromValue(value);
    if (!shard.ok()) {
      return Annotate(shard.status(), absl::StrCat("shard ", manifest.shards.size()));
    }
    manifest.shards.push_back(*std::move(shard));
  }
  return manifest;
}

}  // namespace

absl::Status ValidateCoverage(const Manifest& manifest, const model::Graph& graph) {
  const auto refuse = [&manifest](const auto&... pieces) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint of run ", manifest.run, " at step ",
                                                   manifest.step, ": ", pieces...));
  };
  absl::flat_hash_map<absl::string_view, const Shard*> holder;
  for (const model::Parameter& parameter : graph.parameters) holder[parameter.name] = nullptr;
  for (const Shard& shard : manifest.shards) {
    for (const std::string& name : shard.parameters) {
      const auto found = holder.find(name);
      if (found == holder.end()) {
        return refuse("shard ", shard.sha256, " holds '", name, "', which the model does not have");
      }
      if (found->second != nullptr) {
        return refuse("parameter '", name, "' is in shard ", found->second->sha256,
                      " and again in shard ", shard.sha256);
      }
      found->second = &shard;
    }
  }
  for (const model::Parameter& parameter : graph.parameters) {
    if (holder[parameter.name] == nullptr) {
      return refuse("parameter '", parameter.name, "' is in no shard");
    }
  }
  return absl::OkStatus();
}

std::string ToJson(const Manifest& manifest) {
  Json shards = Json::array();
  for (const Shard& shard : manifest.shards) {
    shards.push_back(
        {{"sha256", shard.sha256}, {"bytes", shard.bytes}, {"parameters", shard.parameters}});
  }
  const Json root = {{"schema", kSchema},
                     {"run", manifest.run},
                     {"epoch", {{"term", manifest.epoch.term}, {"number", manifest.epoch.number}}},
                     {"step", manifest.step},
                     {"tokens", manifest.tokens},
                     {"numeric_class", manifest.numeric_class},
                     {"shards", shards}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Manifest> ManifestFromJson(absl::string_view json) {
  const auto root = ParseJson(json, kJsonBytesMax);
  if (!root.ok()) return Annotate(root.status(), "checkpoint manifest");
  auto manifest = FromValue(*root);
  if (!manifest.ok()) return Annotate(manifest.status(), "checkpoint manifest");
  return manifest;
}

}  // namespace longhaul::checkpoint
