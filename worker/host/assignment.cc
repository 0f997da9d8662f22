#include "worker/host/assignment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "model/buffer_plan.h"
#include "model/family.h"
#include "schedule/replay.h"

namespace longhaul::worker {
namespace {

absl::Status Wrong(const Assignment& assignment, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("assignment of run ", assignment.run, " epoch ",
                                                 ToString(assignment.epoch), ": ", what));
}

absl::Status CheckStart(const Assignment& assignment) {
  const int64_t steps = assignment.spec.train.steps;
  if (assignment.start_step < 0 || assignment.start_step >= steps) {
    return Wrong(assignment,
                 absl::StrCat("it starts after step ", assignment.start_step, " of ", steps));
  }
  const int64_t state = assignment.checkpoint.has_value() ? assignment.checkpoint->step : 0;
  if (assignment.start_step == state) return absl::OkStatus();
  return Wrong(assignment, absl::StrCat("it starts after step ", assignment.start_step,
                                        " from the state after step ", state));
}

absl::Status CheckStages(const Assignment& assignment, const model::Graph& graph) {
  const size_t stages = assignment.stages.size();
  if (stages == 0) return Wrong(assignment, "it has no stages");
  if (assignment.stage < 0 || static_cast<size_t>(assignment.stage) >= stages) {
    return Wrong(assignment, absl::StrCat("stage ", assignment.stage, " of ", stages));
  }
  if (assignment.link_codecs.size() != stages - 1) {
    return Wrong(assignment,
                 absl::StrCat(assignment.link_codecs.size(), " codecs for ", stages - 1, " links"));
  }
  for (const std::string& codec : assignment.link_codecs) {
    const absl::Status known = compression::FindCodec(codec).status();
    if (!known.ok()) return Wrong(assignment, known.message());
  }
  const std::vector<int> cuts = graph.CutPoints();
  int expected_begin = 0;
  for (size_t s = 0; s < stages; ++s) {
    const model::OpRange range = assignment.stages[s].range;
    const int end = static_cast<int>(graph.ops.size());
    const bool legal_end = s + 1 == stages
                               ? range.end == end
                               : std::binary_search(cuts.begin(), cuts.end(), range.end);
    if (range.begin != expected_begin || range.end <= range.begin || !legal_end) {
      return Wrong(assignment, absl::StrCat("stage ", s, " has operators ", range.begin, " to ",
                                            range.end, ", which does not cover the model"));
    }
    expected_begin = range.end;
  }
  return absl::OkStatus();
}

bool Uses(const model::Graph& graph, model::OpRange range, int parameter) {
  const std::vector<int> held = graph.ParametersOf(range);
  return std::binary_search(held.begin(), held.end(), parameter);
}

// Parameters that the first and the last stage share; only these may be tied.
absl::StatusOr<std::vector<int>> TiedAcrossStages(const Assignment& assignment,
                                                  const model::Graph& graph,
                                                  const std::vector<model::OpRange>& ranges) {
  std::vector<int> across;
  for (const int parameter : graph.TiedParameters()) {
    int holders = 0;
    for (const model::OpRange& range : ranges) holders += Uses(graph, range, parameter);
    if (holders < 2) continue;
    if (holders > 2 || !Uses(graph, ranges.front(), parameter) ||
        !Uses(graph, ranges.back(), parameter)) {
      return Wrong(assignment, absl::StrCat("parameter ", graph.parameters[parameter].name,
                                            " is shared by other stages than the first and last"));
    }
    across.push_back(parameter);
  }
  return across;
}

// The link to `peer`, both directions.
LinkOptions MakeLink(const Assignment& assignment, const StagePlan& plan,
                     const std::vector<schedule::Program>& programs, int peer,
                     int64_t tied_elements, int connections) {
  const int self = assignment.stage;
  const int upstream = std::min(self, peer);
  const StagePeer& other = assignment.stages[peer];
  LinkOptions link;
  link.peer_group = link.peer_stage = peer;
  link.peer_node = other.node;
  link.peer_address = other.data_address;
  link.tied_elements = static_cast<uint64_t>(tied_elements);
  link.connections = connections;
  // Two numbers for each parameter: its index and its sum of squares.
  link.norms_max = 2 * plan.graph.parameters.size();
  if (std::max(self, peer) - upstream == 1) {
    link.codec = assignment.link_codecs[upstream];
    link.tensor_elements = static_cast<uint64_t>(model::BoundaryElements(
        plan.graph, plan.ranges[upstream].end, assignment.spec.train.micro_batch));
    link.window = schedule::LinkWindow(programs, upstream);
  }
  return link;
}

}  // namespace

absl::StatusOr<StagePlan> MakeStagePlan(const Assignment& assignment,
                                        int64_t validation_micro_batches, int connections) {
  LH_RETURN_IF_ERROR(run::Validate(assignment.spec));
  if (validation_micro_batches > kValidationMicroBatchesMax) {
    return Wrong(assignment,
                 absl::StrCat("the validation part has ", validation_micro_batches,
                              " micro-batches, more than the ", kValidationMicroBatchesMax,
                              " allowed; set a smaller data.validation_fraction"));
  }
  LH_RETURN_IF_ERROR(CheckStart(assignment));
  StagePlan plan;
  LH_ASSIGN_OR_RETURN(plan.graph, model::BuildGraph(assignment.spec.model));
  LH_RETURN_IF_ERROR(CheckStages(assignment, plan.graph));
  for (const StagePeer& stage : assignment.stages) plan.ranges.push_back(stage.range);
  const int stages = static_cast<int>(plan.ranges.size());
  plan.is_first = assignment.stage == 0;
  plan.is_last = assignment.stage == stages - 1;

  LH_ASSIGN_OR_RETURN(const std::vector<int> tied,
                      TiedAcrossStages(assignment, plan.graph, plan.ranges));
  int64_t tied_elements = 0;
  for (const int parameter : tied) {
    tied_elements = std::max(tied_elements, plan.graph.parameters[parameter].elements());
  }
  plan.shape = {.stages = stages,
                .micro_batches = static_cast<int>(assignment.spec.train.micro_batches()),
                .tied = !tied.empty()};
  LH_ASSIGN_OR_RETURN(const std::vector<schedule::Program> programs,
                      schedule::Generate(assignment.spec.schedule, plan.shape));
  LH_RETURN_IF_ERROR(schedule::Replay(programs, plan.shape));
  plan.program = programs[assignment.stage];
  if (validation_micro_batches > 0) {
    plan.evaluation_shape = schedule::EvaluationShape(std::vector<int>(stages, 1),
                                                      static_cast<int>(validation_micro_batches));
    plan.evaluation_program =
        schedule::GenerateEvaluationOf(plan.evaluation_shape, assignment.stage, /*replica=*/0);
  }
  for (int peer = 0; peer < stages; ++peer) {
    const bool neighbour = std::abs(peer - assignment.stage) == 1;
    const bool ends = !tied.empty() && std::abs(peer - assignment.stage) == stages - 1;
    if (peer == assignment.stage || (!neighbour && !ends)) continue;
    plan.links.push_back(
        MakeLink(assignment, plan, programs, peer, ends ? tied_elements : 0, connections));
  }
  return plan;
}

std::vector<int> OwnedParameters(const model::Graph& graph,
                                 const std::vector<model::OpRange>& ranges, int stage) {
  std::vector<int> owned;
  for (const int parameter : graph.ParametersOf(ranges[stage])) {
    const auto earlier = ranges.begin() + stage;
    if (std::none_of(ranges.begin(), earlier,
                     [&](const model::OpRange& range) { return Uses(graph, range, parameter); })) {
      owned.push_back(parameter);
    }
  }
  return owned;
}

}  // namespace longhaul::worker
