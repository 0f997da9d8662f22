#include "coordinator/plan/refusal.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "coordinator/plan/card_needs.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/partition.h"

namespace longhaul::coordinator {
namespace {

// One stage of a partition that does not fit.
struct Demand {
  const NodeProfile* node;
  model::OpRange range;
  model::StageMemory memory;
  int64_t room = 0;
  double Available() const { return static_cast<double>(room); }
  double Load() const { return static_cast<double>(memory.total()) / std::max(1.0, Available()); }
};

double HighestLoad(const std::vector<Demand>& demands) {
  double highest = 0;
  for (const Demand& demand : demands) highest = std::max(highest, demand.Load());
  return highest;
}

// Models of more units are cut evenly for a refusal: none of their partitions fits either.
constexpr int kExactUnitsMax = 200;

std::vector<int> EvenBounds(int units, int stages) {
  std::vector<int> bounds;
  for (int stage = 0; stage <= stages; ++stage) {
    bounds.push_back(static_cast<int>(int64_t{units} * stage / stages));
  }
  return bounds;
}

// The partition over `order` whose fullest node is the least full.
std::vector<Demand> LeastLoaded(Job& job, const ScheduleModel& schedule,
                                const std::vector<int>& order) {
  Cutting& cutting = job.CuttingFor(static_cast<int>(order.size()));
  const int units = cutting.units.count();
  const CardNeeds needs = CardNeedsOf(cutting.units, job.spec.train.precision);
  const bool recompute = job.spec.recompute != run::Recompute::kNever;
  const auto demand = [&](int stage, int begin, int end) {
    const NodeProfile& node = job.eligible.nodes[order[stage]];
    return Demand{
        &node, cutting.units.Ops(begin, end),
        cutting.memory.Of(begin, end, schedule.slots()[stage], recompute, job.PrecisionOn(node)),
        MemoryForStage(node, needs, {stage, static_cast<int>(order.size())})};
  };
  const auto load = [&](int stage, int begin, int end) { return demand(stage, begin, end).Load(); };
  const auto always = [](int, int, int) { return true; };
  const auto no_bytes = [](int) { return 0.0; };
  const std::optional<std::vector<int>> bounds =
      units > kExactUnitsMax ? EvenBounds(units, static_cast<int>(order.size()))
                             : MinimizeSlowestStage({.units = units,
                                                     .stages = static_cast<int>(order.size()),
                                                     .seconds = load,
                                                     .fits = always,
                                                     .cut_bytes = no_bytes});
  LH_CHECK(bounds.has_value(), units, " units in ", order.size(), " stages");
  std::vector<Demand> demands;
  for (size_t stage = 0; stage < order.size(); ++stage) {
    demands.push_back(demand(static_cast<int>(stage), (*bounds)[stage], (*bounds)[stage + 1]));
  }
  return demands;
}

std::string Remedy(const Job& job, const Demand& fullest, size_t stages, bool stages_fixed) {
  const model::StageMemory& memory = fullest.memory;
  const int64_t state =
      memory.weights + memory.working_weights + memory.gradients + memory.optimizer;
  std::vector<std::string> remedies;
  if (memory.activations + memory.scratch > state && job.spec.train.micro_batch > 1) {
    remedies.push_back(
        absl::StrCat("a smaller train.micro_batch (now ", job.spec.train.micro_batch, ")"));
  }
  if (memory.activations > state && job.spec.schedule == "gpipe" && job.micro_batches() > 1) {
    remedies.push_back("schedule 1f1b, which keeps fewer micro-batches in flight");
  }
  const size_t stages_max = std::min<size_t>(job.StagesMax(), job.eligible.nodes.size());
  if (stages_fixed && stages < stages_max) {
    remedies.push_back(absl::StrCat("more stages (pipeline.stages up to ", stages_max, ")"));
  } else if (stages < static_cast<size_t>(job.StagesMax())) {
    remedies.push_back("more nodes");
  }
  if (job.spec.recompute == run::Recompute::kNever) {
    remedies.push_back("pipeline.recompute: auto, which keeps fewer activations");
  }
  remedies.push_back("nodes with more memory");
  remedies.push_back("a smaller model");
  return absl::StrCat("What helps: ", absl::StrJoin(remedies, ", or "));
}

}  // namespace

absl::Status DoesNotFit(Job& job, const ScheduleModel& schedule,
                        const std::vector<std::vector<int>>& orders, bool stages_fixed) {
  LH_CHECK(!orders.empty());
  std::vector<Demand> best;
  for (const std::vector<int>& order : orders) {
    std::vector<Demand> demands = LeastLoaded(job, schedule, order);
    if (best.empty() || HighestLoad(demands) < HighestLoad(best)) best = std::move(demands);
  }
  const auto fullest = std::max_element(
      best.begin(), best.end(), [](const auto& a, const auto& b) { return a.Load() < b.Load(); });
  std::vector<std::string> stages;
  for (size_t stage = 0; stage < best.size(); ++stage) {
    const Demand& demand = best[stage];
    const double needed = static_cast<double>(demand.memory.total());
    stages.push_back(absl::StrCat("stage ", stage, " (", FormatLayers(job.graph, demand.range),
                                  ") needs ", FormatMebibytes(needed),
                                  " (most: ", LargestPart(demand.memory), "), node ",
                                  demand.node->name, " has ", FormatMebibytes(demand.Available()),
                                  needed > demand.Available() ? ", too little" : ""));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the job does not fit into memory, even as ", FormatCount(best.size(), "stage"), ": ",
      absl::StrJoin(stages, "; "), ". ", Remedy(job, *fullest, best.size(), stages_fixed)));
}

}  // namespace longhaul::coordinator
