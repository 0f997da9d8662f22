#include "coordinator/host/record_json.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "coordinator/plan/device.h"

namespace longhaul::coordinator {
namespace {

constexpr int64_t kSchema = 1;
// Of runs; those of schema 1 hold manifests.
constexpr int64_t kRunSchema = 2;
constexpr size_t kRecordBytesMax = size_t{64} << 20;
constexpr int64_t kWholeMax = std::numeric_limits<int64_t>::max();

constexpr NodeState kNodeStates[] = {NodeState::kConnected, NodeState::kLost, NodeState::kDraining,
                                     NodeState::kDrained};
constexpr RunState kRunStates[] = {RunState::kPending, RunState::kRunning, RunState::kInterrupted,
                                   RunState::kStopped, RunState::kFailed,  RunState::kDone};

std::string Dump(const Json& json) {
  // Messages of other hosts are quoted in reasons; bytes that are not UTF-8 become U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Our own writers' output as a value.
Json Embed(const std::string& text) { return Json::parse(text, nullptr, false); }

template <typename E, size_t N>
absl::StatusOr<E> StateFromName(const Json& json, const E (&states)[N], std::string (*name)(E)) {
  LH_ASSIGN_OR_RETURN(const std::string text, JsonText(json, "state"));
  for (const E state : states) {
    if (name(state) == text) return state;
  }
  return absl::InvalidArgumentError(absl::StrCat("'state' is '", text, "', which is not known"));
}

// A number of any sign bit; JsonWhole knows only int64_t.
absl::StatusOr<uint64_t> Unsigned(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer() ||
      (!found->is_number_unsigned() && found->get<int64_t>() < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("'", key, "' is not a whole number"));
  }
  return found->get<uint64_t>();
}

Json ProfileToJson(const NodeProfile& profile) {
  return {{"name", profile.name},
          {"site", profile.site},
          {"host", profile.host},
          {"host_cores", profile.host_cores},
          {"flops_per_second", profile.flops_per_second},
          {"bytes_per_second", profile.bytes_per_second},
          {"threads", profile.threads},
          {"memory_bytes", profile.memory_bytes},
          {"process_bytes", profile.process_bytes},
          {"numeric_class", profile.numeric_class},
          {"trusted_network", profile.trusted_network},
          {"device_kind", NameOf(profile.device_kind)},
          {"device_name", profile.device_name},
          {"device_uuid", profile.device_uuid},
          {"device_memory_bytes", profile.device_memory_bytes},
          {"bfloat16_flops_per_second", profile.bfloat16_flops_per_second}};
}

absl::StatusOr<NodeProfile> ProfileFromJson(const Json& json) {
  NodeProfile profile;
  LH_ASSIGN_OR_RETURN(profile.name, JsonText(json, "name"));
  LH_RETURN_IF_ERROR(ValidateName("node name", profile.name));
  LH_ASSIGN_OR_RETURN(profile.site, JsonText(json, "site"));
  LH_ASSIGN_OR_RETURN(profile.host, JsonText(json, "host"));
  LH_ASSIGN_OR_RETURN(const int64_t cores, JsonWhole(json, "host_cores", 0, 1 << 20));
  profile.host_cores = static_cast<int>(cores);
  LH_ASSIGN_OR_RETURN(profile.flops_per_second, JsonReal(json, "flops_per_second"));
  LH_ASSIGN_OR_RETURN(profile.bytes_per_second, JsonReal(json, "bytes_per_second"));
  LH_ASSIGN_OR_RETURN(const int64_t threads, JsonWhole(json, "threads", 0, 1 << 20));
  profile.threads = static_cast<int>(threads);
  LH_ASSIGN_OR_RETURN(profile.memory_bytes, JsonWhole(json, "memory_bytes", 0, kWholeMax));
  // Records of a build that did not measure it do not have it.
  if (json.contains("process_bytes")) {
    LH_ASSIGN_OR_RETURN(profile.process_bytes, JsonWhole(json, "process_bytes", 0, kWholeMax));
  }
  LH_ASSIGN_OR_RETURN(profile.numeric_class, JsonText(json, "numeric_class"));
  // Records of a build without replicas do not have it.
  if (json.contains("trusted_network")) {
    LH_ASSIGN_OR_RETURN(profile.trusted_network, JsonFlag(json, "trusted_network"));
  }
  // Records of a build without workers on cards have none of these.
  if (json.contains("device_kind")) {
    LH_ASSIGN_OR_RETURN(const std::string kind, JsonText(json, "device_kind"));
    LH_ASSIGN_OR_RETURN(profile.device_kind, DeviceKindNamed(kind));
    LH_ASSIGN_OR_RETURN(profile.device_name, JsonText(json, "device_name"));
    LH_ASSIGN_OR_RETURN(profile.device_uuid, JsonText(json, "device_uuid"));
    LH_ASSIGN_OR_RETURN(profile.bfloat16_flops_per_second,
                        JsonReal(json, "bfloat16_flops_per_second"));
  }
  // Records of a build that did not add up what workers of a card take do not have it.
  if (json.contains("device_memory_bytes")) {
    LH_ASSIGN_OR_RETURN(profile.device_memory_bytes,
                        JsonWhole(json, "device_memory_bytes", 0, kWholeMax));
  }
  return profile;
}

Json EpochToJson(const Epoch& epoch) { return {{"term", epoch.term}, {"number", epoch.number}}; }

absl::StatusOr<Epoch> EpochFromJson(const Json& json) {
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  LH_ASSIGN_OR_RETURN(const Json* epoch, JsonObject(json, "epoch"));
  LH_ASSIGN_OR_RETURN(const int64_t term, JsonWhole(*epoch, "term", 0, kMax));
  LH_ASSIGN_OR_RETURN(const int64_t number, JsonWhole(*epoch, "number", 0, kMax));
  return Epoch{static_cast<uint32_t>(term), static_cast<uint32_t>(number)};
}

Json IdToJson(const ManifestId& id) {
  return {{"epoch", EpochToJson(id.epoch)}, {"step", id.step}};
}

absl::StatusOr<ManifestId> IdFromJson(const Json& json) {
  ManifestId id;
  LH_ASSIGN_OR_RETURN(id.epoch, EpochFromJson(json));
  LH_ASSIGN_OR_RETURN(id.step, JsonWhole(json, "step", 0, kWholeMax));
  return id;
}

// The nested object under `key` as text for its own parser.
absl::StatusOr<std::string> Nested(const Json& json, const char* key) {
  LH_ASSIGN_OR_RETURN(const Json* nested, JsonObject(json, key));
  return Dump(*nested);
}

// Of schema 1.
absl::Status ReadWholeManifests(const Json& json, RunRecord& record) {
  if (json.contains("checkpoint")) {
    LH_ASSIGN_OR_RETURN(const std::string text, Nested(json, "checkpoint"));
    LH_ASSIGN_OR_RETURN(record.checkpoint, checkpoint::ManifestFromJson(text));
  }
  if (!json.contains("other_checkpoints")) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const Json* others, JsonArray(json, "other_checkpoints"));
  for (const Json& entry : *others) {
    OtherCheckpoint& other = record.other_checkpoints.emplace_back();
    LH_ASSIGN_OR_RETURN(const std::string text, Nested(entry, "manifest"));
    LH_ASSIGN_OR_RETURN(other.manifest, checkpoint::ManifestFromJson(text));
    LH_ASSIGN_OR_RETURN(other.damage, JsonText(entry, "damage"));
  }
  return absl::OkStatus();
}

absl::Status ReadManifestIds(const Json& json, StoredRun& run) {
  if (json.contains("checkpoint")) {
    LH_ASSIGN_OR_RETURN(const Json* checkpoint, JsonObject(json, "checkpoint"));
    LH_ASSIGN_OR_RETURN(run.checkpoint, IdFromJson(*checkpoint));
  }
  if (!json.contains("other_checkpoints")) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const Json* others, JsonArray(json, "other_checkpoints"));
  for (const Json& entry : *others) {
    StoredRun::Other& other = run.others.emplace_back();
    LH_ASSIGN_OR_RETURN(other.id, IdFromJson(entry));
    LH_ASSIGN_OR_RETURN(other.damage, JsonText(entry, "damage"));
  }
  return absl::OkStatus();
}

// What may be absent, and what records of older builds do not have.
absl::Status ReadOptional(const Json& json, RunRecord& record) {
  if (json.contains("plan")) {
    LH_ASSIGN_OR_RETURN(const std::string text, Nested(json, "plan"));
    LH_ASSIGN_OR_RETURN(record.plan, PlanFromJson(text));
  }
  if (json.contains("replicas_requested")) {
    LH_ASSIGN_OR_RETURN(const int64_t replicas, JsonWhole(json, "replicas_requested", 0, 1 << 20));
    record.replicas_requested = static_cast<int>(replicas);
  }
  if (json.contains("step_is_named")) {
    LH_ASSIGN_OR_RETURN(record.step_is_named, JsonFlag(json, "step_is_named"));
  }
  return absl::OkStatus();
}

absl::Status ReadNumericClasses(const Json& json, RunRecord& record) {
  if (json.contains(
          "numeric_class")) {  // records of older builds: one, empty before the first plan
    LH_ASSIGN_OR_RETURN(std::string numeric_class, JsonText(json, "numeric_class"));
    if (!numeric_class.empty()) record.numeric_classes.push_back(std::move(numeric_class));
    return absl::OkStatus();
  }
  LH_ASSIGN_OR_RETURN(const Json* classes, JsonArray(json, "numeric_classes"));
  for (const Json& numeric_class : *classes) {
    if (!numeric_class.is_string()) {
      return absl::InvalidArgumentError("'numeric_classes' must hold texts");
    }
    record.numeric_classes.push_back(numeric_class.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

ManifestId IdOf(const checkpoint::Manifest& manifest) { return {manifest.epoch, manifest.step}; }

std::string NodeToJson(const NodeRecord& record) {
  return Dump({{"schema", kSchema},
               {"profile", ProfileToJson(record.facts.profile)},
               {"incarnation", record.facts.incarnation},
               {"data_address", record.facts.data_address},
               {"version", record.facts.version},
               {"state", NodeStateName(record.state)},
               {"reason", record.reason},
               {"address", record.address}});
}

std::string RunToJson(const RunRecord& record) {
  Json json = {{"schema", kRunSchema},
               {"spec", Embed(run::ToJson(record.spec))},
               {"sequence", record.sequence},
               {"state", RunStateName(record.state)},
               {"reason", record.reason},
               {"epoch", EpochToJson(record.epoch)},
               {"token", record.token},
               {"numeric_classes", record.numeric_classes},
               {"stages_requested", record.stages_requested},
               {"replicas_requested", record.replicas_requested},
               {"start_step", record.start_step},
               {"stop_requested", record.stop_requested},
               {"step_is_named", record.step_is_named},
               {"checkpoint_problem", record.checkpoint_problem}};
  if (record.plan.has_value()) json["plan"] = Embed(PlanToJson(*record.plan));
  if (record.checkpoint.has_value()) json["checkpoint"] = IdToJson(IdOf(*record.checkpoint));
  for (const OtherCheckpoint& other : record.other_checkpoints) {
    Json entry = IdToJson(IdOf(other.manifest));
    entry["damage"] = other.damage;
    json["other_checkpoints"].push_back(std::move(entry));
  }
  return Dump(json);
}

absl::StatusOr<NodeRecord> NodeFromJson(absl::string_view text) {
  LH_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kRecordBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(json, kSchema));
  NodeRecord record;
  LH_ASSIGN_OR_RETURN(const Json* profile, JsonObject(json, "profile"));
  LH_ASSIGN_OR_RETURN(record.facts.profile, ProfileFromJson(*profile));
  LH_ASSIGN_OR_RETURN(record.facts.incarnation, Unsigned(json, "incarnation"));
  LH_ASSIGN_OR_RETURN(record.facts.data_address, JsonText(json, "data_address"));
  LH_ASSIGN_OR_RETURN(record.facts.version, JsonText(json, "version"));
  LH_ASSIGN_OR_RETURN(record.state, StateFromName(json, kNodeStates, NodeStateName));
  LH_ASSIGN_OR_RETURN(record.reason, JsonText(json, "reason"));
  LH_ASSIGN_OR_RETURN(record.address, JsonText(json, "address"));
  return record;
}

absl::StatusOr<StoredRun> RunFromJson(absl::string_view text) {
  LH_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kRecordBytesMax));
  const bool is_old = JsonSchema(json, kSchema).ok();
  if (!is_old) LH_RETURN_IF_ERROR(JsonSchema(json, kRunSchema));
  StoredRun run;
  RunRecord& record = run.record;
  LH_ASSIGN_OR_RETURN(const std::string spec, Nested(json, "spec"));
  LH_ASSIGN_OR_RETURN(record.spec, run::FromJson(spec));
  LH_ASSIGN_OR_RETURN(record.sequence, Unsigned(json, "sequence"));
  LH_ASSIGN_OR_RETURN(record.state, StateFromName(json, kRunStates, RunStateName));
  LH_ASSIGN_OR_RETURN(record.reason, JsonText(json, "reason"));
  LH_ASSIGN_OR_RETURN(record.epoch, EpochFromJson(json));
  LH_ASSIGN_OR_RETURN(record.token, JsonText(json, "token"));
  LH_RETURN_IF_ERROR(ReadNumericClasses(json, record));
  LH_ASSIGN_OR_RETURN(const int64_t stages, JsonWhole(json, "stages_requested", 0, 1 << 20));
  record.stages_requested = static_cast<int>(stages);
  LH_ASSIGN_OR_RETURN(record.start_step, JsonWhole(json, "start_step", 0, kWholeMax));
  LH_ASSIGN_OR_RETURN(record.stop_requested, JsonFlag(json, "stop_requested"));
  LH_ASSIGN_OR_RETURN(record.checkpoint_problem, JsonText(json, "checkpoint_problem"));
  LH_RETURN_IF_ERROR(ReadOptional(json, record));
  LH_RETURN_IF_ERROR(is_old ? ReadWholeManifests(json, record) : ReadManifestIds(json, run));
  return run;
}

}  // namespace longhaul::coordinator
