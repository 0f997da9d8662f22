#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/card_needs.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/table.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

constexpr size_t kReasonColumnsMax = 98;

const NodeProfile* FindNode(const PlanRequest& request, const std::string& name) {
  const auto found = std::find_if(request.nodes.begin(), request.nodes.end(),
                                  [&](const NodeProfile& node) { return node.name == name; });
  return found == request.nodes.end() ? nullptr : &*found;
}

// The operators instead where the model of the request is not the plan's.
std::string LayersColumn(const absl::StatusOr<model::Graph>& graph, model::OpRange range) {
  if (!graph.ok() || range.begin >= range.end || range.end > static_cast<int>(graph->ops.size()) ||
      range.begin < 0) {
    return absl::StrCat("ops ", range.begin, "-", range.end - 1);
  }
  return LayersOf(*graph, range);
}

// "1", "1 replica 2".
std::string GroupColumn(const Plan& plan, int group) {
  const std::string stage = absl::StrCat(plan.StageOf(group));
  if (!plan.IsReplicated(group)) return stage;
  return absl::StrCat(stage, " replica ", plan.stages[static_cast<size_t>(group)].replica);
}

// "2 replica 1, 3 micro-batches".
std::string StageColumn(const Plan& plan, int group) {
  std::string name = GroupColumn(plan, group);
  if (plan.IsReplicated(group)) {
    const int micro_batches = plan.stages[static_cast<size_t>(group)].micro_batches;
    absl::StrAppend(&name, ", ", micro_batches, " micro-batch", micro_batches == 1 ? "" : "es");
  }
  return name;
}

// "cuda bf16".
std::string DeviceColumn(const NodeProfile* node, const PlanRequest& request) {
  if (node == nullptr) return "-";
  return absl::StrCat(NameOf(node->device_kind), " ",
                      model::NameOf(PrecisionOf(*node, request.spec.train.precision)));
}

// Whether some stage is on a card: then the table says what each device computes in.
bool HasCards(const Plan& plan, const PlanRequest& request) {
  return std::any_of(plan.stages.begin(), plan.stages.end(), [&](const StagePlacement& stage) {
    const NodeProfile* const node = FindNode(request, stage.node);
    return node != nullptr && node->device_kind == DeviceKind::kCuda;
  });
}

std::string StageTable(const Plan& plan, const PlanRequest& request) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(request.spec.model);
  std::vector<std::vector<std::string>> rows = {{"STAGE", "NODE", "SITE", "DEVICE", "LAYERS",
                                                 "SLOTS", "RECOMPUTE", "MEMORY", "OF", "FORWARD",
                                                 "BACKWARD", "SENDS"}};
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlacement& stage = plan.stages[s];
    const NodeProfile* node = FindNode(request, stage.node);
    const int group = static_cast<int>(s);
    const size_t link = static_cast<size_t>(plan.StageOf(group));
    rows.push_back(
        {StageColumn(plan, group), stage.node, node == nullptr ? "-" : node->site,
         DeviceColumn(node, request), LayersColumn(graph, stage.range), absl::StrCat(stage.slots),
         stage.recompute ? "yes" : "no", FormatMebibytes(static_cast<double>(stage.memory.total())),
         node == nullptr ? "-" : FormatMebibytes(static_cast<double>(node->memory_bytes)),
         FormatSeconds(stage.forward_seconds), FormatSeconds(stage.backward_seconds),
         link < plan.link_codecs.size() ? plan.link_codecs[link] : "-"});
  }
  using enum Align;
  std::vector<Align> columns = {kLeft, kLeft,  kLeft,  kLeft,  kLeft,  kRight,
                                kLeft, kRight, kRight, kRight, kRight, kLeft};
  if (!HasCards(plan, request)) {
    constexpr int kDevice = 3;
    columns.erase(columns.begin() + kDevice);
    for (std::vector<std::string>& row : rows) row.erase(row.begin() + kDevice);
  }
  return FormatTable(columns, rows);
}

// Whether the plan is one of the graph: its stages follow one another to the graph's end.
bool IsOf(const Plan& plan, const absl::StatusOr<model::Graph>& graph) {
  if (!graph.ok() || plan.stages.empty()) return false;
  int begin = 0, end = 0;
  for (const StagePlacement& stage : plan.stages) {
    if (stage.replica == 0) begin = end;
    end = stage.range.end;
    if (stage.range.begin != begin || begin >= end) return false;
  }
  return end == static_cast<int>(graph->ops.size());
}

// By group, what its worker takes beside its stage: on a card, as planned; of a process, as it
// said.
std::vector<std::string> BesideColumn(const Plan& plan, const PlanRequest& request) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(request.spec.model);
  const bool is_of = IsOf(plan, graph);
  const CardNeeds needs = is_of ? CardNeedsOf(*graph, plan, request.spec.train) : CardNeeds();
  std::vector<std::vector<const NodeProfile*>> replicas;  // by stage
  for (const StagePlacement& stage : plan.stages) {
    if (stage.replica == 0 || replicas.empty()) replicas.emplace_back();
    replicas.back().push_back(FindNode(request, stage.node));
  }
  std::vector<std::string> column;
  const int stages = static_cast<int>(replicas.size());
  for (int stage = 0; stage < stages; ++stage) {
    const std::vector<const NodeProfile*>& nodes = replicas[static_cast<size_t>(stage)];
    const bool known = std::count(nodes.begin(), nodes.end(), nullptr) == 0;
    for (const NodeProfile* node : nodes) {
      double bytes = node == nullptr ? 0 : static_cast<double>(node->process_bytes);
      if (known && is_of && node->device_kind == DeviceKind::kCuda) {
        const bool nccl = SumByNccl(nodes, request.spec.exact_replicas);
        bytes = BytesBeside(needs, {stage, stages, nccl});
      }
      column.push_back(bytes == 0 ? "-" : FormatMebibytes(bytes));
    }
  }
  return column;
}

// What each stage's memory is for, and what its worker takes beside it.
std::string MemoryTable(const Plan& plan, const PlanRequest& request) {
  std::vector<std::vector<std::string>> rows = {{"STAGE", "WEIGHTS", "GRADIENTS", "OPTIMIZER",
                                                 "ACTIVATIONS", "SCRATCH", "CONSTANTS", "TOTAL",
                                                 "BESIDE"}};
  const std::vector<std::string> beside = BesideColumn(plan, request);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const model::StageMemory& memory = plan.stages[s].memory;
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(GroupColumn(plan, static_cast<int>(s)));
    for (const int64_t bytes :
         {memory.weights + memory.working_weights, memory.gradients, memory.optimizer,
          memory.activations, memory.scratch, memory.constants, memory.total()}) {
      row.push_back(FormatMebibytes(static_cast<double>(bytes)));
    }
    row.push_back(beside[s]);
  }
  return FormatTable(std::vector<Align>(rows[0].size(), Align::kRight), rows);
}

// "- " and the sentence, broken between words.
std::string ListItem(const std::string& sentence) {
  std::string text = "- ";
  size_t column = text.size();
  size_t begin = 0;
  while (begin < sentence.size()) {
    const size_t end = std::min(sentence.find(' ', begin), sentence.size());
    const std::string word = sentence.substr(begin, end - begin);
    if (column > 2 && column + 1 + word.size() > kReasonColumnsMax) {
      text += "\n  ";
      column = 2;
    } else if (column > 2) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    begin = end + 1;
  }
  return text + "\n";
}

}  // namespace

std::string PlanToText(const Plan& plan, const PlanRequest& request) {
  const double tokens = static_cast<double>(request.spec.train.global_batch) *
                        static_cast<double>(request.spec.model.context);
  std::string text =
      absl::StrCat("Plan of run ", request.spec.name, ": ", FormatCount(plan.StageCount(), "stage"),
                   ", schedule ", plan.schedule, ", ", FormatCount(plan.wan_links, "WAN link"),
                   "\n", "Predicted: ", FormatSeconds(plan.step_seconds), " a step");
  if (plan.step_seconds > 0) {
    absl::StrAppend(&text, ", ", static_cast<int64_t>(tokens / plan.step_seconds + 0.5),
                    " tokens/s");
  }
  absl::StrAppend(&text, "\n\n", StageTable(plan, request), "\nMemory of each stage:\n",
                  MemoryTable(plan, request), "\nWhy:\n");
  for (const std::string& reason : plan.reasons) text += ListItem(reason);
  return text;
}

}  // namespace longhaul::coordinator
