#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "coordinator/plan/planner.h"
#include "schedule/program.h"

namespace longhaul::coordinator {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kBytesMax = size_t{4} << 20;
constexpr size_t kStagesMax = kGroupsMax;
constexpr size_t kReasonsMax = 8192;
constexpr int64_t kMemoryMax =
    std::numeric_limits<int64_t>::max() / 8;  // seven of them still add up
constexpr int64_t kIntMax = std::numeric_limits<int>::max();

Json MemoryJson(const model::StageMemory& memory) {
  return {{"weights", memory.weights},         {"working_weights", memory.working_weights},
          {"gradients", memory.gradients},     {"optimizer", memory.optimizer},
          {"activations", memory.activations}, {"scratch", memory.scratch},
          {"constants", memory.constants}};
}

absl::StatusOr<model::StageMemory> ReadMemory(const Json& json) {
  LH_RETURN_IF_ERROR(JsonOnlyKeys(json, {"weights", "working_weights", "gradients", "optimizer",
                                         "activations", "scratch", "constants"}));
  model::StageMemory memory;
  LH_ASSIGN_OR_RETURN(memory.weights, JsonWhole(json, "weights", 0, kMemoryMax));
  LH_ASSIGN_OR_RETURN(memory.gradients, JsonWhole(json, "gradients", 0, kMemoryMax));
  LH_ASSIGN_OR_RETURN(memory.optimizer, JsonWhole(json, "optimizer", 0, kMemoryMax));
  LH_ASSIGN_OR_RETURN(memory.activations, JsonWhole(json, "activations", 0, kMemoryMax));
  LH_ASSIGN_OR_RETURN(memory.scratch, JsonWhole(json, "scratch", 0, kMemoryMax));
  if (json.contains("working_weights")) {  // plans of before have none
    LH_ASSIGN_OR_RETURN(memory.working_weights, JsonWhole(json, "working_weights", 0, kMemoryMax));
  }
  if (json.contains("constants")) {  // neither
    LH_ASSIGN_OR_RETURN(memory.constants, JsonWhole(json, "constants", 0, kMemoryMax));
  }
  return memory;
}

absl::StatusOr<double> ReadSeconds(const Json& json, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const double seconds, JsonReal(json, key));
  if (std::isfinite(seconds) && seconds >= 0) return seconds;
  return absl::InvalidArgumentError(absl::StrCat("'", key, "' must be at least 0, got ", seconds));
}

Json StageJson(const StagePlacement& stage) {
  return {{"node", stage.node},
          {"replica", stage.replica},
          {"micro_batches", stage.micro_batches},
          {"first_op", stage.range.begin},
          {"end_op", stage.range.end},
          {"slots", stage.slots},
          {"recompute", stage.recompute},
          {"kept_memory_bytes", stage.kept_memory_bytes},
          {"memory", MemoryJson(stage.memory)},
          {"forward_seconds", stage.forward_seconds},
          {"backward_seconds", stage.backward_seconds}};
}

// A plan of a build without replicas has neither key.
absl::Status ReadReplica(const Json& json, const Plan& plan, StagePlacement& stage) {
  int64_t replica = 0, micro_batches = 0;
  if (json.contains("replica")) {
    const int64_t next = plan.stages.empty() ? 0 : plan.stages.back().replica + 1;
    LH_ASSIGN_OR_RETURN(replica, JsonWhole(json, "replica", 0, next));
    if (replica != 0 && replica != next) {
      return absl::InvalidArgumentError(absl::StrCat("'replica' must be 0 or ", next));
    }
  }
  if (json.contains("micro_batches")) {
    LH_ASSIGN_OR_RETURN(micro_batches, JsonWhole(json, "micro_batches", 0, kIntMax));
  }
  stage.replica = static_cast<int>(replica);
  stage.micro_batches = static_cast<int>(micro_batches);
  return absl::OkStatus();
}

// The next one of the plan.
absl::StatusOr<StagePlacement> ReadStage(const Json& json, const Plan& plan) {
  LH_RETURN_IF_ERROR(JsonOnlyKeys(
      json, {"node", "replica", "micro_batches", "first_op", "end_op", "slots", "recompute",
             "kept_memory_bytes", "memory", "forward_seconds", "backward_seconds"}));
  StagePlacement stage;
  LH_ASSIGN_OR_RETURN(stage.node, JsonText(json, "node"));
  LH_RETURN_IF_ERROR(ValidateName("node name", stage.node));
  LH_RETURN_IF_ERROR(ReadReplica(json, plan, stage));
  // A stage begins where the one before ends; its replicas have the same operators.
  const model::OpRange before =
      plan.stages.empty() ? model::OpRange{0, 0} : plan.stages.back().range;
  const bool again = stage.replica > 0;
  const int64_t first_op = again ? before.begin : before.end;
  LH_ASSIGN_OR_RETURN(const int64_t begin, JsonWhole(json, "first_op", first_op, first_op));
  LH_ASSIGN_OR_RETURN(const int64_t end, JsonWhole(json, "end_op", again ? before.end : begin + 1,
                                                   again ? before.end : kIntMax));
  stage.range = {static_cast<int>(begin), static_cast<int>(end)};
  LH_ASSIGN_OR_RETURN(const int64_t slots, JsonWhole(json, "slots", 1, kIntMax));
  stage.slots = static_cast<int>(slots);
  if (json.contains("recompute")) {  // plans of before do not
    LH_ASSIGN_OR_RETURN(stage.recompute, JsonFlag(json, "recompute"));
    LH_ASSIGN_OR_RETURN(stage.kept_memory_bytes,
                        JsonWhole(json, "kept_memory_bytes", 0, kMemoryMax));
  }
  LH_ASSIGN_OR_RETURN(const Json* memory, JsonObject(json, "memory"));
  LH_ASSIGN_OR_RETURN(stage.memory, ReadMemory(*memory));
  LH_ASSIGN_OR_RETURN(stage.forward_seconds, ReadSeconds(json, "forward_seconds"));
  LH_ASSIGN_OR_RETURN(stage.backward_seconds, ReadSeconds(json, "backward_seconds"));
  return stage;
}

absl::Status ReadStages(const Json& json, Plan& plan) {
  LH_ASSIGN_OR_RETURN(const Json* stages, JsonArray(json, "stages"));
  if (stages->empty() || stages->size() > kStagesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("'stages' must have 1 to ", kStagesMax, " elements, got ", stages->size()));
  }
  for (const Json& element : *stages) {
    absl::StatusOr<StagePlacement> stage = ReadStage(element, plan);
    if (!stage.ok()) {
      return Annotate(stage.status(), absl::StrCat("stages[", plan.stages.size(), "]"));
    }
    plan.stages.push_back(*std::move(stage));
  }
  return absl::OkStatus();
}

absl::Status ReadCodecs(const Json& json, Plan& plan) {
  LH_ASSIGN_OR_RETURN(const Json* codecs, JsonArray(json, "link_codecs"));
  const size_t stages = static_cast<size_t>(plan.StageCount());
  if (codecs->size() + 1 != stages) {
    return absl::InvalidArgumentError(absl::StrCat("'link_codecs' has ", codecs->size(),
                                                   " elements; ", stages, " stages have ",
                                                   stages - 1, " links"));
  }
  for (const Json& codec : *codecs) {
    if (!codec.is_string()) return absl::InvalidArgumentError("'link_codecs' must hold texts");
    LH_RETURN_IF_ERROR(compression::FindCodec(codec.get_ref<const std::string&>()).status());
    plan.link_codecs.push_back(codec.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadReasons(const Json& json, Plan& plan) {
  LH_ASSIGN_OR_RETURN(const Json* reasons, JsonArray(json, "reasons"));
  if (reasons->size() > kReasonsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("'reasons' has more than ", kReasonsMax, " elements"));
  }
  for (const Json& reason : *reasons) {
    if (!reason.is_string()) return absl::InvalidArgumentError("'reasons' must hold texts");
    plan.reasons.push_back(reason.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadNumericClasses(const Json& json, Plan& plan) {
  if (json.contains("numeric_class")) {  // plans of before had one
    LH_ASSIGN_OR_RETURN(plan.numeric_classes.emplace_back(), JsonText(json, "numeric_class"));
    return absl::OkStatus();
  }
  LH_ASSIGN_OR_RETURN(const Json* classes, JsonArray(json, "numeric_classes"));
  if (classes->size() > plan.stages.size()) {
    return absl::InvalidArgumentError(absl::StrCat("'numeric_classes' has ", classes->size(),
                                                   " elements for ", plan.stages.size(), " nodes"));
  }
  for (const Json& numeric_class : *classes) {
    if (!numeric_class.is_string()) {
      return absl::InvalidArgumentError("'numeric_classes' must hold texts");
    }
    plan.numeric_classes.push_back(numeric_class.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

std::string PlanToJson(const Plan& plan) {
  Json json = {{"schema", kSchema},
               {"schedule", plan.schedule},
               {"link_codecs", plan.link_codecs},
               {"wan_links", plan.wan_links},
               {"step_seconds", plan.step_seconds},
               {"numeric_classes", plan.numeric_classes},
               {"reasons", plan.reasons}};
  Json& stages = json["stages"] = Json::array();
  for (const StagePlacement& stage : plan.stages) stages.push_back(StageJson(stage));
  // What is not UTF-8 (a foreign numeric class) must not throw.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Plan> PlanFromJson(absl::string_view text) {
  LH_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(json, kSchema));
  LH_RETURN_IF_ERROR(
      JsonOnlyKeys(json, {"schema", "schedule", "link_codecs", "wan_links", "step_seconds",
                          "numeric_class", "numeric_classes", "reasons", "stages"}));
  Plan plan;
  LH_RETURN_IF_ERROR(ReadStages(json, plan));
  LH_RETURN_IF_ERROR(ReadCodecs(json, plan));
  LH_RETURN_IF_ERROR(ReadReasons(json, plan));
  LH_ASSIGN_OR_RETURN(plan.schedule, JsonText(json, "schedule"));
  const std::vector<std::string> schedules = schedule::ScheduleNames();
  if (std::find(schedules.begin(), schedules.end(), plan.schedule) == schedules.end()) {
    return absl::InvalidArgumentError(absl::StrCat("schedule '", plan.schedule,
                                                   "' is not known; this build knows ",
                                                   absl::StrJoin(schedules, ", ")));
  }
  const auto links = static_cast<int64_t>(plan.link_codecs.size());
  LH_ASSIGN_OR_RETURN(const int64_t wan_links, JsonWhole(json, "wan_links", 0, links));
  plan.wan_links = static_cast<int>(wan_links);
  LH_ASSIGN_OR_RETURN(plan.step_seconds, ReadSeconds(json, "step_seconds"));
  LH_RETURN_IF_ERROR(ReadNumericClasses(json, plan));
  return plan;
}

}  // namespace longhaul::coordinator
