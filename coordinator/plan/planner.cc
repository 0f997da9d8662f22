#include "coordinator/plan/planner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/plan/candidate.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/job.h"
#include "coordinator/plan/placement.h"
#include "coordinator/plan/reasons.h"
#include "coordinator/plan/refusal.h"
#include "coordinator/plan/schedule_model.h"
#include "coordinator/plan/select_nodes.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

// Sets of nodes that are partitioned and simulated for a number of stages, at most: those with the
// best estimates that fit. Long pipelines take long to simulate, and differ less.
int SetsTriedMax(int stages) { return stages <= 16 ? 6 : 2; }

// A plan must be better by this part to replace one tried earlier: simpler ones are tried first.
constexpr double kBetter = 1 - 1e-6;

// Every number up to 16, then steps of about an eighth; `most` always.
std::vector<int> StageCounts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count += std::max(1, count / 8)) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

absl::Status CheckRequest(const PlanRequest& request) {
  const run::TrainSpec& train = request.spec.train;
  if (train.micro_batch < 1 || train.global_batch < train.micro_batch ||
      train.micro_batches() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.micro_batch is ", train.micro_batch, " and train.global_batch ", train.global_batch,
        ": a step needs at least one micro-batch of one sequence"));
  }
  if (request.stages < 0 || request.spec.stages < 0) {
    return absl::InvalidArgumentError("pipeline.stages must not be negative");
  }
  return absl::OkStatus();
}

class Planner {
 public:
  Planner(Job& job, bool stages_fixed) : job_(job) { decision_.stages_fixed = stages_fixed; }

  absl::Status TryCount(int stages);
  // FailedPrecondition when nothing that was tried fits.
  absl::StatusOr<Plan> Choose();

 private:
  absl::StatusOr<std::vector<Placement>> PlacementsOf(const ScheduleModel& schedule) const;

  Job& job_;
  Decision decision_;
  absl::Status does_not_fit_;  // of the largest number of stages that does not fit
};

absl::StatusOr<std::vector<Placement>> Planner::PlacementsOf(const ScheduleModel& schedule) const {
  std::vector<double> model_seconds;
  for (const NodeCosts& costs : job_.costs) model_seconds.push_back(costs.Model().total());
  absl::Status failed;
  const auto leg = [&](const NodeProfile& from, const NodeProfile& to) {
    absl::StatusOr<SiteLeg> result = LegBetween(job_, from, to);
    failed.Update(result.status());
    return result.ok() ? *result : SiteLeg{};
  };
  std::vector<Placement> placements =
      Placements({.nodes = job_.eligible.nodes,
                  .model_seconds = std::move(model_seconds),
                  .slots = schedule.slots(),
                  .micro_batches = static_cast<double>(job_.micro_batches()),
                  .leg = leg});
  LH_RETURN_IF_ERROR(failed);
  return placements;
}

absl::Status Planner::TryCount(int stages) {
  const schedule::Shape shape = {.stages = stages,
                                 .micro_batches = job_.micro_batches(),
                                 .tied = stages > 1 && job_.units.TiedBytes() > 0};
  LH_ASSIGN_OR_RETURN(const ScheduleModel schedule,
                      ScheduleModel::Create(job_.spec.schedule, shape));
  LH_ASSIGN_OR_RETURN(const std::vector<Placement> placements, PlacementsOf(schedule));
  int sets_tried = 0;
  for (const Placement& placement : placements) {
    if (sets_tried == SetsTriedMax(stages)) break;
    bool fits = false;
    for (const std::vector<int>& order : placement.orders) {
      LH_ASSIGN_OR_RETURN(std::optional<Candidate> candidate, Evaluate(job_, schedule, order));
      if (!candidate.has_value()) continue;
      fits = true;
      decision_.candidates.push_back(*std::move(candidate));
    }
    sets_tried += fits ? 1 : 0;
  }
  if (sets_tried > 0) return absl::OkStatus();
  decision_.counts_not_fitting.push_back(stages);
  std::vector<std::vector<int>> orders;
  for (const Placement& placement : placements) {
    orders.insert(orders.end(), placement.orders.begin(), placement.orders.end());
  }
  does_not_fit_ = DoesNotFit(job_, schedule, orders, decision_.stages_fixed);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Planner::Choose() {
  std::vector<Candidate>& candidates = decision_.candidates;
  if (candidates.empty()) return does_not_fit_;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Plan& best = candidates[decision_.chosen].plan;
    const Plan& plan = candidates[i].plan;
    const bool as_good = plan.step_seconds * kBetter < best.step_seconds;
    if (plan.step_seconds < best.step_seconds * kBetter ||
        (as_good && plan.wan_links < best.wan_links)) {
      decision_.chosen = i;
    }
  }
  Plan plan = candidates[decision_.chosen].plan;
  plan.reasons = Reasons(job_, decision_);
  return plan;
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanRequest& request) {
  LH_RETURN_IF_ERROR(CheckRequest(request));
  LH_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(request.spec.model));
  const int stages = request.stages > 0
                         ? request.stages
                         : static_cast<int>(std::min<int64_t>(request.spec.stages,
                                                              std::numeric_limits<int>::max()));
  const int layers = static_cast<int>(graph.CutPoints().size()) + 1;
  if (stages > layers) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model.layers is ", request.spec.model.layers, ": at most ", FormatCount(layers, "stage"),
        ", since a stage holds whole layers; ", stages, " were asked for"));
  }
  LH_ASSIGN_OR_RETURN(EligibleNodes eligible, SelectNodes(request, stages));
  const int nodes = static_cast<int>(eligible.nodes.size());
  Job job(request.spec, std::move(graph), std::move(eligible), Links(request.links));
  Planner planner(job, stages > 0);
  const std::vector<int> counts =
      stages > 0 ? std::vector<int>{stages} : StageCounts(std::min(layers, nodes));
  for (const int count : counts) LH_RETURN_IF_ERROR(planner.TryCount(count));
  return planner.Choose();
}

}  // namespace longhaul::coordinator
