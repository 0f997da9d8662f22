#include "coordinator/plan/replicas.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "coordinator/plan/card_needs.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/replica_costs.h"

namespace longhaul::coordinator {
namespace {

// A further replica must make the step shorter by this part.
constexpr double kPays = 0.99;

using NodesByStage = std::vector<std::vector<const NodeProfile*>>;

const NodeProfile& FindNode(const PlanRequest& request, const std::string& name) {
  const auto found = std::find_if(request.nodes.begin(), request.nodes.end(),
                                  [&](const NodeProfile& node) { return node.name == name; });
  LH_CHECK(found != request.nodes.end(), "the plan names node ", name);
  return *found;
}

NodesByStage LeadersOf(const PlanRequest& request, const Plan& plan) {
  NodesByStage nodes;
  for (const StagePlacement& stage : plan.stages) {
    nodes.push_back({&FindNode(request, stage.node)});
  }
  return nodes;
}

// Replicas of the stage as the run says; 0: auto. A resume with another number of stages than a
// list has goes by its first number.
int Wanted(const run::RunSpec& spec, size_t stage, size_t stages) {
  return static_cast<int>(spec.replicas.size() == stages ? spec.replicas[stage]
                                                         : spec.replicas.front());
}

// Free nodes that may be replicas beside the leader, the fastest first. They compute the same bits.
std::vector<const NodeProfile*> SpareNodes(const PlanRequest& request, const NodesByStage& nodes,
                                           const NodeProfile& leader) {
  std::set<const NodeProfile*> taken;
  for (const auto& of_stage : nodes) taken.insert(of_stage.begin(), of_stage.end());
  std::vector<const NodeProfile*> spare;
  for (const NodeProfile& node : request.nodes) {
    if (node.site == leader.site && node.numeric_class == leader.numeric_class &&
        node.trusted_network && !taken.contains(&node)) {
      spare.push_back(&node);
    }
  }
  const auto rate = [&](const NodeProfile* node) {
    return FlopsPerSecond(*node, request.spec.train.precision);
  };
  std::stable_sort(spare.begin(), spare.end(), [&](const NodeProfile* a, const NodeProfile* b) {
    return rate(a) != rate(b) ? rate(a) > rate(b) : a->name < b->name;
  });
  return spare;
}

// Adds `count` spare nodes to the stage; false if there are fewer.
bool Extend(const PlanRequest& request, size_t stage, size_t count, NodesByStage& nodes) {
  const NodeProfile& leader = *nodes[stage].front();
  if (count == 0) return true;
  const std::vector<const NodeProfile*> spare = SpareNodes(request, nodes, leader);
  if (!leader.trusted_network || spare.size() < count) return false;
  nodes[stage].insert(nodes[stage].end(), spare.begin(), spare.begin() + count);
  return true;
}

// The first stage that cannot have the replicas that are wanted; -1: none. They are in `nodes`.
int ExtendAll(const PlanRequest& request, NodesByStage& nodes) {
  for (size_t stage = 0; stage < nodes.size(); ++stage) {
    const int wanted = std::max(1, Wanted(request.spec, stage, nodes.size()));
    if (!Extend(request, stage, wanted - 1, nodes)) return static_cast<int>(stage);
  }
  return -1;
}

absl::Status TooFewNodes(const PlanRequest& request, const Plan& plan, int stage) {
  const NodeProfile& leader = FindNode(request, plan.stages[stage].node);
  const int wanted = Wanted(request.spec, stage, plan.stages.size());
  size_t trusted = 0, all = 0;
  for (const NodeProfile& node : request.nodes) {
    if (node.site != leader.site || node.numeric_class != leader.numeric_class) continue;
    ++all;
    trusted += node.trusted_network ? 1 : 0;
  }
  const bool mixed = request.spec.any_numeric_class;
  return absl::FailedPreconditionError(absl::StrCat(
      "pipeline.replicas asks for ", wanted, " replicas of stage ", stage,
      ", which must be in one site", mixed ? " and of one numeric class" : "", ": site ",
      leader.site, " has ", FormatCount(static_cast<int64_t>(all), "node"),
      mixed ? absl::StrCat(" of class '", leader.numeric_class, "'") : "", ", ", trusted,
      " of them with `trusted_network: true`, for all of its stages; ask for fewer replicas or "
      "stages, start more workers there",
      trusted < all ? ", or say that their network is trusted" : ""));
}

// What the run's file says is valid, but a resume may ask for other numbers.
absl::Status CheckWanted(const PlanRequest& request, size_t stages) {
  const int64_t micro_batches = request.spec.train.micro_batches();
  for (size_t stage = 0; stage < stages; ++stage) {
    const int wanted = Wanted(request.spec, stage, stages);
    if (wanted > micro_batches) {
      return absl::FailedPreconditionError(
          absl::StrCat(wanted, " replicas of stage ", stage, " are more than the ", micro_batches,
                       " micro-batches of a step; ask for at most as many"));
    }
    if (request.spec.exact_replicas && wanted > 0 &&
        !run::AllowsExactReplicas(micro_batches, wanted)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "pipeline.exact_replicas needs a power of two of replicas with a power of two of "
          "micro-batches each; ",
          wanted, " replicas of stage ", stage, " and ", micro_batches, " micro-batches are not"));
    }
  }
  return absl::OkStatus();
}

// What the group of the layout's plan with replicas may take of its node's memory.
int64_t RoomOf(const ReplicaLayout& layout, const CardNeeds& needs, const Plan& plan, int group) {
  const int stage = plan.StageOf(group);
  const std::vector<const NodeProfile*>& replicas = layout.nodes[stage];
  const bool nccl = SumByNccl(replicas, layout.request.spec.exact_replicas);
  return MemoryForStage(*replicas[plan.stages[group].replica], needs,
                        {stage, plan.StageCount(), nccl});
}

CardNeeds NeedsOf(const ReplicaLayout& layout) {
  return CardNeedsOf(layout.graph, layout.plan, layout.request.spec.train);
}

// The group of the layout's plan with replicas that its node's memory does not hold; -1: none.
int FindTooLarge(const ReplicaLayout& layout, const Plan& plan) {
  const CardNeeds needs = NeedsOf(layout);
  for (int group = 0; group < static_cast<int>(plan.stages.size()); ++group) {
    const int64_t room = RoomOf(layout, needs, plan, group);
    if (plan.stages[group].memory.total() > room) return group;
  }
  return -1;
}

absl::Status TooLarge(const ReplicaLayout& layout, const Plan& plan, int index) {
  const PlanRequest& request = layout.request;
  const StagePlacement& group = plan.stages[index];
  const int64_t room = RoomOf(layout, NeedsOf(layout), plan, index);
  return absl::FailedPreconditionError(absl::StrCat(
      "with what pipeline.replicas and pipeline.exact_replicas say, ", plan.NameOf(index),
      " needs ", FormatMebibytes(static_cast<double>(group.memory.total())), " (",
      LargestPart(group.memory), "), node ", group.node, " has ",
      FormatMebibytes(static_cast<double>(room)),
      ": use more stages, a smaller train.micro_batch or fewer replicas",
      request.spec.exact_replicas ? ", or leave out pipeline.exact_replicas" : ""));
}

// How many further nodes the stage must get at once for a number of replicas that is allowed; 0:
// it may have no more.
size_t NextStep(const run::RunSpec& spec, size_t replicas) {
  const int64_t micro_batches = spec.train.micro_batches();
  for (size_t more = 1; replicas + more <= size_t{kReplicasMax}; ++more) {
    const auto count = static_cast<int64_t>(replicas + more);
    if (count > micro_batches) return 0;
    if (!spec.exact_replicas || run::AllowsExactReplicas(micro_batches, count)) return more;
  }
  return 0;
}

// The stage whose slowest replica works longest in a step and that may have more replicas.
std::vector<size_t> SlowestFirst(const Plan& plan, size_t stages) {
  std::vector<double> seconds(stages, 0);
  size_t stage = 0;
  for (size_t group = 0; group < plan.stages.size(); ++group) {
    const StagePlacement& placement = plan.stages[group];
    if (placement.replica == 0 && group > 0) ++stage;
    seconds[stage] =
        std::max(seconds[stage], placement.micro_batches *
                                     (placement.forward_seconds + placement.backward_seconds));
  }
  std::vector<size_t> order;
  for (size_t s = 0; s < stages; ++s) order.push_back(s);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return seconds[a] > seconds[b]; });
  return order;
}

// Gives the slowest stage that gains by it further nodes, as long as one does.
absl::StatusOr<Plan> AddWhilePays(const ReplicaLayout& start, Plan best) {
  ReplicaLayout layout = start;
  bool better = true;
  while (better) {
    better = false;
    for (const size_t stage : SlowestFirst(best, layout.nodes.size())) {
      if (Wanted(layout.request.spec, stage, layout.nodes.size()) != 0) continue;
      const NodesByStage before = layout.nodes;
      const size_t more = NextStep(layout.request.spec, layout.nodes[stage].size());
      if (more == 0 || best.stages.size() + more > size_t{kGroupsMax} ||
          !Extend(layout.request, stage, more, layout.nodes)) {
        continue;
      }
      LH_ASSIGN_OR_RETURN(Plan plan, PlanOf(layout));
      if (FindTooLarge(layout, plan) < 0 && plan.step_seconds < kPays * best.step_seconds) {
        best = std::move(plan);
        better = true;
        break;
      }
      layout.nodes = before;
    }
  }
  return best;
}

std::vector<std::string> ReasonsOf(const PlanRequest& request, const Plan& base, const Plan& plan) {
  std::vector<std::string> reasons;
  for (size_t first = 0; first < plan.stages.size();) {
    size_t end = first + 1;
    while (end < plan.stages.size() && plan.stages[end].replica > 0) ++end;
    if (end - first > 1) {
      std::vector<std::string> shares;
      for (size_t group = first; group < end; ++group) {
        shares.push_back(
            absl::StrCat(plan.stages[group].node, " ", plan.stages[group].micro_batches));
      }
      reasons.push_back(absl::StrCat(
          "Replicas: stage ", plan.StageOf(static_cast<int>(first)), " on ",
          FormatCount(static_cast<int64_t>(end - first), "node"), " of its site, which take ",
          JoinWords(shares), " of ", request.spec.train.micro_batches(), " micro-batches of a step",
          request.spec.exact_replicas ? " in equal blocks, so that the sums have the same bits"
                                      : " by their speed",
          "."));
    }
    first = end;
  }
  if (reasons.empty()) return base.reasons;
  reasons.push_back(absl::StrCat("Without replicas a step would take ",
                                 FormatSeconds(base.step_seconds), " instead of ",
                                 FormatSeconds(plan.step_seconds),
                                 "; what follows is said of the stages' first replicas alone."));
  reasons.insert(reasons.end(), base.reasons.begin(), base.reasons.end());
  return reasons;
}

}  // namespace

std::vector<int> SharesBySpeed(absl::Span<const double> seconds, int micro_batches) {
  LH_CHECK(!seconds.empty() && static_cast<int>(seconds.size()) <= micro_batches, seconds.size(),
           " replicas, ", micro_batches, " micro-batches");
  std::vector<int> shares(seconds.size(), 1);
  // When a replica would be done with one more, and which; of equal ones the first.
  using Next = std::pair<double, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<Next>> next;
  for (size_t r = 0; r < seconds.size(); ++r) next.push({2 * seconds[r], r});
  for (int rest = micro_batches - static_cast<int>(seconds.size()); rest > 0; --rest) {
    const size_t r = next.top().second;
    next.pop();
    ++shares[r];
    next.push({(shares[r] + 1) * seconds[r], r});
  }
  return shares;
}

absl::Status CheckGroups(const run::RunSpec& spec, int stages) {
  int64_t groups = stages;
  for (int stage = 0; stage < std::min(stages, kGroupsMax); ++stage) {
    const auto count = static_cast<size_t>(stages);
    groups += std::max(1, Wanted(spec, static_cast<size_t>(stage), count)) - 1;
  }
  if (groups <= kGroupsMax) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("pipeline.stages and pipeline.replicas ask for ", groups,
                   " nodes, more than the ", kGroupsMax, " that a run may have; ask for fewer"));
}

bool HasRoomForReplicas(const PlanRequest& request, const Plan& plan) {
  NodesByStage nodes = LeadersOf(request, plan);
  return CheckGroups(request.spec, plan.StageCount()).ok() && ExtendAll(request, nodes) < 0;
}

absl::StatusOr<Plan> AddReplicas(const PlanRequest& request, const model::Graph& graph,
                                 const Plan& plan) {
  if (request.spec.replicas == std::vector<int64_t>{1} && !request.spec.exact_replicas) return plan;
  LH_RETURN_IF_ERROR(CheckGroups(request.spec, plan.StageCount()));
  LH_RETURN_IF_ERROR(CheckWanted(request, plan.stages.size()));
  const Links links(request.links);
  ReplicaLayout layout{request, graph, links, plan, LeadersOf(request, plan)};
  if (const int stage = ExtendAll(request, layout.nodes); stage >= 0) {
    return TooFewNodes(request, plan, stage);
  }
  LH_ASSIGN_OR_RETURN(Plan best, PlanOf(layout));
  if (const int group = FindTooLarge(layout, best); group >= 0) {
    return TooLarge(layout, best, group);
  }
  LH_ASSIGN_OR_RETURN(best, AddWhilePays(layout, std::move(best)));
  if (best.stages.size() == plan.stages.size()) best.step_seconds = plan.step_seconds;
  best.reasons = ReasonsOf(request, plan, best);
  return best;
}

}  // namespace longhaul::coordinator
