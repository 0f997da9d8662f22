#include "coordinator/plan/planner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "coordinator/plan/candidate.h"
#include "coordinator/plan/card_sharing.h"
#include "coordinator/plan/classes.h"
#include "coordinator/plan/effort.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/job.h"
#include "coordinator/plan/placement.h"
#include "coordinator/plan/reasons.h"
#include "coordinator/plan/refusal.h"
#include "coordinator/plan/replicas.h"
#include "coordinator/plan/schedule_model.h"
#include "coordinator/plan/select_nodes.h"
#include "model/family.h"

namespace longhaul::coordinator {
namespace {

// Sets of nodes that are partitioned and simulated for a number of stages, at most: those with the
// best estimates that fit. Long pipelines take long to simulate, and differ less.
int SetsTriedMax(int stages) { return stages <= 16 ? 6 : 2; }

// Orders of which the least full is looked for when none fits, which takes the square of the units.
size_t OrdersRefusedMax(int units) { return std::clamp(4'000'000 / (units * units), 2, 1'000); }

// A plan must be better by this part to replace one tried earlier: simpler ones are tried first.
constexpr double kBetter = 1 - 1e-6;

// Inside layers more bytes cross a cut: that must make the step faster by this part. With more
// stages than these it is not tried.
constexpr double kFinerPays = 0.995;
constexpr int kFinerStagesMax = 16;

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

// The most that a stage is to have; 1 where that is the planner's choice.
int ReplicasOf(const run::RunSpec& spec) {
  const auto most = std::max_element(spec.replicas.begin(), spec.replicas.end());
  return static_cast<int>(std::max<int64_t>(1, *most));
}

class Planner {
 public:
  Planner(const PlanRequest& request, Job& job, bool stages_fixed) : request_(request), job_(job) {
    decision_.stages_fixed = stages_fixed;
    std::set<std::string> sites;
    for (const NodeProfile& node : job_.eligible.nodes) sites.insert(node.site);
    decision_.tried_all = sites.size() <= kExhaustiveSitesMax;
  }

  // Before anything is tried.
  absl::Status ComputeLegs();
  absl::Status TryCounts(const Effort& effort);
  bool found() const { return !decision_.candidates.empty(); }
  // FailedPrecondition when nothing that was tried fits.
  absl::StatusOr<Plan> Choose();

 private:
  absl::Status TryCount(int stages, int orders_max, bool last);
  absl::StatusOr<ScheduleModel> ScheduleOf(int stages) const;
  // Cuts the chosen candidate inside layers where that is faster.
  absl::Status Refine(Candidate& candidate);
  std::vector<Placement> PlacementsOf(const ScheduleModel& schedule) const;

  const PlanRequest& request_;
  Job& job_;
  std::vector<std::vector<SiteLeg>> legs_;  // [from][to], by nodes
  Decision decision_;
  absl::Status does_not_fit_;  // of the largest number of stages that does not fit
};

absl::Status Planner::ComputeLegs() {
  for (const NodeProfile& from : job_.eligible.nodes) {
    std::vector<SiteLeg>& legs = legs_.emplace_back();
    for (const NodeProfile& to : job_.eligible.nodes) {
      LH_ASSIGN_OR_RETURN(legs.emplace_back(), LegBetween(job_, from, to));
    }
  }
  return absl::OkStatus();
}

std::vector<Placement> Planner::PlacementsOf(const ScheduleModel& schedule) const {
  std::vector<double> model_seconds;
  for (const NodeCosts& costs : job_.cheapest.costs) model_seconds.push_back(costs.Model().total());
  return Placements({.nodes = job_.eligible.nodes,
                     .model_seconds = std::move(model_seconds),
                     .slots = schedule.slots(),
                     .micro_batches = static_cast<double>(job_.micro_batches()),
                     .replicas = ReplicasOf(job_.spec),
                     .legs = legs_});
}

absl::Status Planner::TryCounts(const Effort& effort) {
  decision_.tried_all = decision_.tried_all && effort.all_counts;
  for (const int count : effort.counts) {
    LH_RETURN_IF_ERROR(TryCount(count, effort.orders_max, count == effort.counts.back()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ScheduleModel> Planner::ScheduleOf(int stages) const {
  return ScheduleModel::Create(job_.spec.schedule, {.stages = stages,
                                                    .micro_batches = job_.micro_batches(),
                                                    .tied = stages > 1 && job_.TiedBytes() > 0});
}

absl::Status Planner::Refine(Candidate& candidate) {
  const int stages = static_cast<int>(candidate.nodes.size());
  if (stages < 2 || stages > kFinerStagesMax || !job_.every.has_value()) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const ScheduleModel schedule, ScheduleOf(stages));
  LH_ASSIGN_OR_RETURN(std::optional<Candidate> finer,
                      Evaluate(job_, *job_.every, schedule, candidate.nodes));
  if (finer.has_value() && finer->plan.step_seconds < kFinerPays * candidate.plan.step_seconds) {
    candidate = *std::move(finer);
  }
  return absl::OkStatus();
}

absl::Status Planner::TryCount(int stages, int orders_max, bool last) {
  LH_ASSIGN_OR_RETURN(const ScheduleModel schedule, ScheduleOf(stages));
  const std::vector<Placement> placements = PlacementsOf(schedule);
  int sets_tried = 0;
  int orders_tried = 0;
  for (const Placement& placement : placements) {
    if (sets_tried == SetsTriedMax(stages)) break;
    bool fits = false;
    for (const std::vector<int>& order : placement.orders) {
      if (orders_tried == orders_max) {
        decision_.tried_all = false;
        break;
      }
      LH_ASSIGN_OR_RETURN(std::optional<Candidate> candidate,
                          Evaluate(job_, job_.CuttingFor(stages), schedule, order));
      if (!candidate.has_value()) continue;
      fits = true;
      ++orders_tried;
      decision_.candidates.push_back(*std::move(candidate));
    }
    sets_tried += fits ? 1 : 0;
  }
  if (sets_tried > 0) return absl::OkStatus();
  decision_.counts_not_fitting.push_back(stages);
  if (found() || !last) return absl::OkStatus();
  std::vector<std::vector<int>> orders;
  for (const Placement& placement : placements) {
    orders.insert(orders.end(), placement.orders.begin(), placement.orders.end());
  }
  orders.resize(std::min<size_t>(orders.size(), OrdersRefusedMax(job_.cheapest.units.count())));
  does_not_fit_ = DoesNotFit(job_, schedule, orders, decision_.stages_fixed);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Planner::Choose() {
  std::vector<Candidate>& candidates = decision_.candidates;
  if (candidates.empty()) return does_not_fit_;
  const auto has_room = [&](const Candidate& candidate) {
    return HasRoomForReplicas(request_, candidate.plan);
  };
  const auto first = std::find_if(candidates.begin(), candidates.end(), has_room);
  if (first != candidates.end()) decision_.chosen = first - candidates.begin();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (first != candidates.end() && !has_room(candidates[i])) continue;
    const Plan& best = candidates[decision_.chosen].plan;
    const Plan& plan = candidates[i].plan;
    const bool as_good = plan.step_seconds * kBetter < best.step_seconds;
    if (plan.step_seconds < best.step_seconds * kBetter ||
        (as_good && plan.wan_links < best.wan_links)) {
      decision_.chosen = i;
    }
  }
  LH_RETURN_IF_ERROR(Refine(candidates[decision_.chosen]));
  Plan plan = candidates[decision_.chosen].plan;
  plan.reasons = Reasons(job_, decision_);
  return AddReplicas(request_, job_.graph, plan);
}

// The best plan with these nodes.
absl::StatusOr<Plan> PlanOn(const PlanRequest& request, const model::Graph& graph,
                            const EligibleNodes& eligible, int stages) {
  PlanRequest usable = request;
  usable.nodes = eligible.nodes;
  const int nodes = static_cast<int>(eligible.nodes.size());
  Job job(request.spec, graph, eligible, Links(request.links));
  if (stages > job.StagesMax()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model can be cut into at most ", FormatCount(job.StagesMax(), "stage"), "; ", stages,
        " were asked for: set pipeline.stages to ", job.StagesMax(), " or less"));
  }
  Planner planner(usable, job, stages > 0);
  LH_RETURN_IF_ERROR(planner.ComputeLegs());
  const int units = job.cheapest.units.count();
  const int most = std::min({units, nodes, kGroupsMax});
  const Effort effort = stages > 0 ? EffortForCount(units, stages, job.micro_batches())
                                   : EffortForCounts(units, most, job.micro_batches());
  LH_RETURN_IF_ERROR(planner.TryCounts(effort));
  if (!planner.found() && stages == 0 && effort.counts.back() != most) {
    LH_RETURN_IF_ERROR(planner.TryCounts(EffortForCount(units, most, job.micro_batches())));
  }
  return planner.Choose();
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanRequest& asked) {
  LH_RETURN_IF_ERROR(CheckRequest(asked));
  PlanRequest request = asked;
  ShareCardMemory(request.nodes);
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(request.spec.model));
  const int stages = request.stages > 0
                         ? request.stages
                         : static_cast<int>(std::min<int64_t>(request.spec.stages,
                                                              std::numeric_limits<int>::max()));
  LH_RETURN_IF_ERROR(CheckGroups(request.spec, stages));
  LH_ASSIGN_OR_RETURN(const std::vector<EligibleNodes> choices, SelectNodes(request, stages));
  std::vector<ClassPlan> plans;
  for (const EligibleNodes& eligible : choices) {
    plans.push_back({eligible, PlanOn(request, graph, eligible, stages)});
  }
  return FastestClass(request, plans);
}

}  // namespace longhaul::coordinator
