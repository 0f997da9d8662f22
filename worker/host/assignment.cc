#include "worker/host/assignment.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "model/family.h"
#include "model/stage_parameters.h"
#include "schedule/groups.h"
#include "schedule/replay.h"
#include "worker/host/links.h"

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

// The stages and replicas of the device groups: a group whose replica is 0 begins a stage.
absl::StatusOr<schedule::Shape> ShapeOf(const Assignment& assignment) {
  schedule::Shape shape{.stages = 0};
  shape.micro_batches = static_cast<int>(assignment.spec.train.micro_batches());
  std::vector<std::vector<int>> shares;
  for (const StagePeer& group : assignment.stages) {
    if (group.replica == 0) {
      ++shape.stages;
      shape.replicas.push_back(0);
      shares.emplace_back();
    }
    if (shape.stages == 0 || group.replica != shape.replicas.back() ||
        group.replica >= kReplicasMax) {
      return Wrong(assignment, absl::StrCat("replica ", group.replica, " of node ", group.node,
                                            " is not in its place"));
    }
    ++shape.replicas.back();
    const int share = group.micro_batches == 0 ? shape.micro_batches : group.micro_batches;
    if (share < 1 || share > shape.micro_batches) {
      return Wrong(assignment, absl::StrCat("node ", group.node, " takes ", share, " of ",
                                            shape.micro_batches, " micro-batches"));
    }
    shares.back().push_back(share);
  }
  for (const std::vector<int>& of_stage : shares) {
    const int64_t sum = std::accumulate(of_stage.begin(), of_stage.end(), int64_t{0});
    if (sum != shape.micro_batches) {
      return Wrong(assignment, absl::StrCat("the replicas of stage ", shape.owners.size(), " take ",
                                            sum, " of ", shape.micro_batches, " micro-batches"));
    }
    shape.owners.push_back(assignment.spec.exact_replicas ? schedule::BlockOwners(of_stage)
                                                          : schedule::SpreadOwners(of_stage));
    const auto allowed = [&](int share) {
      return share == of_stage.front() &&
             run::AllowsExactReplicas(shape.micro_batches, static_cast<int64_t>(of_stage.size()));
    };
    if (assignment.spec.exact_replicas && !std::all_of(of_stage.begin(), of_stage.end(), allowed)) {
      return Wrong(assignment, "exact replicas take equal powers of two of micro-batches");
    }
  }
  return shape;
}

absl::Status CheckStages(const Assignment& assignment, const model::Graph& graph,
                         const std::vector<model::OpRange>& ranges) {
  const size_t stages = ranges.size();
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
    const model::OpRange range = ranges[s];
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

// Shape, groups and ranges, all checked against each other and the model.
absl::Status LayOut(const Assignment& assignment, StagePlan& plan) {
  const int groups = static_cast<int>(assignment.stages.size());
  if (groups == 0) return Wrong(assignment, "it has no stages");
  if (assignment.stage < 0 || assignment.stage >= groups) {
    return Wrong(assignment, absl::StrCat("stage ", assignment.stage, " of ", groups));
  }
  LH_ASSIGN_OR_RETURN(plan.shape, ShapeOf(assignment));
  for (const StagePeer& group : assignment.stages) {
    if (group.replica == 0) {
      plan.ranges.push_back(group.range);
    } else if (group.range != plan.ranges.back()) {
      return Wrong(assignment, absl::StrCat("node ", group.node,
                                            " has other operators than the stage's first replica"));
    }
  }
  LH_RETURN_IF_ERROR(CheckStages(assignment, plan.graph, plan.ranges));
  const schedule::Groups layout(plan.shape);
  plan.stage = layout.stage(assignment.stage);
  plan.replica = layout.replica(assignment.stage);
  plan.micro_batches = static_cast<int>(layout.MicroBatches(assignment.stage).size());
  for (int group = 0; group < groups; ++group) plan.names.push_back(layout.Name(group));
  plan.is_first = plan.stage == 0;
  plan.is_last = plan.stage == plan.shape.stages - 1;
  const int leader = layout.Leader(plan.stage);
  for (int r = 0; r < layout.replicas(plan.stage) && layout.replicas(plan.stage) > 1; ++r) {
    const StagePeer& peer = assignment.stages[leader + r];
    plan.replica_names.push_back(
        absl::StrCat(plan.names[leader + r], " (", peer.node, " at ", peer.data_address, ")"));
  }
  return absl::OkStatus();
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
  LH_RETURN_IF_ERROR(LayOut(assignment, plan));
  plan.shape.tied = !model::ParametersTiedAcross(plan.graph, plan.ranges).empty();
  LH_ASSIGN_OR_RETURN(const std::vector<schedule::Program> programs,
                      schedule::Generate(assignment.spec.schedule, plan.shape));
  LH_RETURN_IF_ERROR(schedule::Replay(programs, plan.shape));
  plan.program = programs[assignment.stage];
  plan.evaluation_shape =
      schedule::EvaluationShape(plan.shape.replicas, static_cast<int>(validation_micro_batches));
  if (validation_micro_batches > 0) {
    plan.evaluation_program =
        schedule::GenerateEvaluationOf(plan.evaluation_shape, plan.stage, plan.replica);
  }
  const LinkFacts facts{plan.graph,
                        plan.ranges,
                        plan.shape,
                        plan.evaluation_shape,
                        programs,
                        assignment.stages,
                        assignment.link_codecs,
                        assignment.spec.train.micro_batch,
                        connections};
  plan.links = MakeLinks(facts, assignment.stage);
  return plan;
}

}  // namespace longhaul::worker
