#include "coordinator/plan/replica_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compression/codec.h"
#include "coordinator/plan/cost_model.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/host_sharing.h"
#include "coordinator/plan/link_costs.h"
#include "coordinator/plan/replicas.h"
#include "coordinator/plan/schedule_model.h"
#include "model/cost.h"

namespace longhaul::coordinator {
namespace {

// The seconds of a group alone on its host.
struct GroupSeconds {
  double forward = 0, backward = 0;
};

// Everything by device group but what says otherwise.
class Costing {
 public:
  explicit Costing(const ReplicaLayout& layout) : layout_(layout) {
    for (size_t stage = 0; stage < layout.nodes.size(); ++stage) {
      leaders_.push_back(static_cast<int>(nodes_.size()));
      for (const NodeProfile* node : layout.nodes[stage]) {
        chosen_.push_back(static_cast<int>(nodes_.size()));
        nodes_.push_back(*node);
        stages_.push_back(static_cast<int>(stage));
      }
    }
    hosts_ = HostsOf(nodes_, chosen_);
    std::vector<int> leaders = leaders_;
    const Hosts before = HostsOf(nodes_, leaders);
    for (size_t group = 0; group < nodes_.size(); ++group) {
      const int stage = stages_[group];
      const StagePlacement& placement = layout.plan.stages[stage];
      const model::Precision precision = layout.request.spec.train.precision;
      const double alone = ShareOf(before, before.host[stage]) *
                           FlopsPerSecond(nodes_[leaders_[stage]], precision) /
                           FlopsPerSecond(nodes_[group], precision);
      seconds_.push_back({placement.forward_seconds * alone, placement.backward_seconds * alone});
    }
  }

  absl::StatusOr<Plan> Make();

 private:
  int micro_batches() const { return static_cast<int>(layout_.request.spec.train.micro_batches()); }
  bool exact() const { return layout_.request.spec.exact_replicas; }
  double Share(size_t group) const { return ShareOf(hosts_, hosts_.host[group]); }
  std::vector<int> SharesOf(int stage) const;
  void AddGroup(size_t group, int share, int slots, Plan& plan) const;
  absl::Status AddLink(int stage, schedule::TimelineCosts& costs) const;
  void AddCollectives(double tied_bytes, schedule::TimelineCosts& costs) const;

  const ReplicaLayout& layout_;
  std::vector<NodeProfile> nodes_;
  std::vector<int> chosen_;   // every index into nodes_
  std::vector<int> stages_;   // of each group
  std::vector<int> leaders_;  // by stage
  Hosts hosts_;
  std::vector<GroupSeconds> seconds_;
};

std::vector<int> Costing::SharesOf(int stage) const {
  const int replicas = static_cast<int>(layout_.nodes[stage].size());
  if (exact()) return std::vector<int>(replicas, micro_batches() / replicas);
  std::vector<double> seconds;
  for (int r = 0; r < replicas; ++r) {
    const size_t group = leaders_[stage] + r;
    seconds.push_back((seconds_[group].forward + seconds_[group].backward) / Share(group));
  }
  return SharesBySpeed(seconds, micro_batches());
}

void Costing::AddGroup(size_t group, int share, int slots, Plan& plan) const {
  const int stage = stages_[group];
  StagePlacement placement = layout_.plan.stages[stage];
  const int64_t of_slot = placement.memory.activations / placement.slots;
  placement.node = nodes_[group].name;
  placement.replica = static_cast<int>(group) - leaders_[stage];
  placement.micro_batches = share;
  placement.slots = slots;
  placement.memory.activations = of_slot * slots;
  if (exact()) placement.memory.gradients *= 1 + std::bit_width(static_cast<unsigned>(share - 1));
  placement.forward_seconds = seconds_[group].forward / Share(group);
  placement.backward_seconds = seconds_[group].backward / Share(group);
  plan.stages.push_back(std::move(placement));
}

// Of the link behind `stage`, which the leaders' sites decide.
absl::Status Costing::AddLink(int stage, schedule::TimelineCosts& costs) const {
  const int64_t bytes = model::BoundaryBytes(layout_.graph, layout_.plan.stages[stage].range.end,
                                             layout_.request.spec.train.micro_batch);
  const double elements = static_cast<double>(bytes) / sizeof(float);
  LH_ASSIGN_OR_RETURN(const compression::Codec* codec,
                      compression::FindCodec(absl::string_view(layout_.plan.link_codecs[stage])));
  AddFrames(PairBetween(layout_.links, nodes_[leaders_[stage]], nodes_[leaders_[stage + 1]]),
            *codec, elements, costs);
  return absl::OkStatus();
}

// Recursive halving and doubling moves 2 (p - 1) / p of the values in 2 log2 p rounds.
void Costing::AddCollectives(double tied_bytes, schedule::TimelineCosts& costs) const {
  const int stages = static_cast<int>(leaders_.size());
  for (int stage = 0; stage < stages; ++stage) {
    const double replicas = static_cast<double>(layout_.nodes[stage].size());
    if (replicas == 1) {
      costs.reduce_seconds.push_back(0);
      costs.tied_broadcast_seconds.push_back(0);
      continue;
    }
    const Link link = layout_.links.Between(nodes_[leaders_[stage]], nodes_[leaders_[stage] + 1]);
    const double rounds = std::ceil(std::log2(replicas));
    const double bytes = static_cast<double>(layout_.plan.stages[stage].memory.gradients);
    costs.reduce_seconds.push_back(2 * rounds * link.latency_seconds +
                                   2 * (replicas - 1) / replicas * bytes / link.bytes_per_second);
    const bool tied = stage == 0 || stage == stages - 1;
    costs.tied_broadcast_seconds.push_back(
        tied ? rounds * (link.latency_seconds + tied_bytes / link.bytes_per_second) : 0);
  }
  AddTiedTraffic(PairBetween(layout_.links, nodes_[leaders_.front()], nodes_[leaders_.back()]),
                 tied_bytes, costs);
}

absl::StatusOr<Plan> Costing::Make() {
  const int stages = static_cast<int>(leaders_.size());
  const std::vector<StagePlacement>& ranges = layout_.plan.stages;
  const double tied_bytes =
      stages < 2 ? 0 : TiedBytes(layout_.graph, ranges.front().range, ranges.back().range);
  std::vector<std::vector<int>> shares;
  for (int stage = 0; stage < stages; ++stage) shares.push_back(SharesOf(stage));
  const schedule::Shape shape = {
      .stages = stages, .micro_batches = micro_batches(), .tied = tied_bytes > 0};
  LH_ASSIGN_OR_RETURN(const ScheduleModel schedule,
                      ScheduleModel::Create(layout_.plan.schedule, shape, shares, exact()));
  Plan plan = layout_.plan;
  plan.stages.clear();
  schedule::TimelineCosts costs;
  costs.host_cores = hosts_.cores;
  for (size_t group = 0; group < nodes_.size(); ++group) {
    const int stage = stages_[group];
    AddGroup(group, shares[stage][group - leaders_[stage]], schedule.slots()[group], plan);
    costs.forward_seconds.push_back(seconds_[group].forward);
    costs.backward_seconds.push_back(seconds_[group].backward);
    costs.optimizer_seconds.push_back(OptimizerSeconds(plan.stages.back().memory, nodes_[group]));
    costs.host.push_back(hosts_.host[group]);
    costs.threads.push_back(hosts_.node_threads[group]);
  }
  for (int stage = 0; stage + 1 < stages; ++stage) LH_RETURN_IF_ERROR(AddLink(stage, costs));
  AddCollectives(tied_bytes, costs);
  LH_ASSIGN_OR_RETURN(const StepPrediction prediction, schedule.Predict(costs));
  plan.step_seconds = prediction.step_seconds;
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanOf(const ReplicaLayout& layout) { return Costing(layout).Make(); }

}  // namespace longhaul::coordinator
