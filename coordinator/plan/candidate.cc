#include "coordinator/plan/candidate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compression/codec.h"
#include "coordinator/plan/card_needs.h"
#include "coordinator/plan/codecs.h"
#include "coordinator/plan/host_sharing.h"
#include "coordinator/plan/link_costs.h"
#include "coordinator/plan/memory_fits.h"
#include "coordinator/plan/partition.h"

namespace longhaul::coordinator {
namespace {

struct Partition {
  std::vector<int> bounds;  // units
  std::vector<bool> recompute;
};

std::optional<Partition> PartitionOver(const Job& job, Cutting& cutting,
                                       const ScheduleModel& schedule, const std::vector<int>& nodes,
                                       const Hosts& hosts) {
  const CardNeeds needs = CardNeedsOf(cutting.units, job.spec.train.precision);
  std::vector<StageRoom> rooms;
  for (size_t stage = 0; stage < nodes.size(); ++stage) {
    const NodeProfile& node = job.eligible.nodes[nodes[stage]];
    const int64_t memory =
        MemoryForStage(node, needs, {static_cast<int>(stage), static_cast<int>(nodes.size())});
    rooms.push_back({memory, schedule.slots()[stage], job.PrecisionOn(node)});
  }
  const MemoryFits memory(cutting.units, cutting.memory, std::move(rooms), job.spec.recompute);
  if (!memory.MayFit()) return std::nullopt;
  const auto fits = [&](int stage, int begin, int end) {
    return memory.Of(stage, begin, end) != Fit::kNo;
  };
  const auto seconds = [&](int stage, int begin, int end) {
    const UnitSeconds alone = cutting.costs[nodes[stage]].Seconds(begin, end);
    const bool keeping = memory.Of(stage, begin, end) == Fit::kKeeping;
    return (alone.total() + (keeping ? 0 : alone.again)) / ShareOf(hosts, hosts.host[stage]);
  };
  const auto cut_bytes = [&](int unit) { return cutting.units.CutBytes(unit); };
  std::optional<std::vector<int>> bounds =
      MinimizeSlowestStage({.units = cutting.units.count(),
                            .stages = static_cast<int>(nodes.size()),
                            .seconds = seconds,
                            .fits = fits,
                            .cut_bytes = cut_bytes});
  if (!bounds.has_value()) return std::nullopt;
  Partition partition;
  for (int stage = 0; stage < static_cast<int>(nodes.size()); ++stage) {
    partition.recompute.push_back(memory.Of(stage, (*bounds)[stage], (*bounds)[stage + 1]) ==
                                  Fit::kRecomputing);
  }
  partition.bounds = *std::move(bounds);
  return partition;
}

// Chooses the codec of the link behind `stage`, and adds what its frames cost.
absl::Status AddLink(const Job& job, double cut_bytes, Candidate& candidate, int stage,
                     schedule::TimelineCosts& costs) {
  const NodeProfile& from = job.eligible.nodes[candidate.nodes[stage]];
  const NodeProfile& to = job.eligible.nodes[candidate.nodes[stage + 1]];
  const LinkPair link = PairBetween(job.links, from, to);
  const double elements = cut_bytes / sizeof(float);
  LH_ASSIGN_OR_RETURN(const compression::Codec* codec,
                      ChooseCodec(job.spec.codec, elements, link.there, link.back));
  AddFrames(link, *codec, elements, costs);
  candidate.plan.link_codecs.push_back(std::string(codec->name()));
  candidate.plan.wan_links += link.there.crosses_sites ? 1 : 0;
  candidate.link_busy_seconds.push_back(
      job.micro_batches() *
      std::max(costs.activation_transfer.back(), costs.gradient_transfer.back()));
  return absl::OkStatus();
}

// The stages of the plan, and what they compute. The plan states seconds while every node of a host
// works; the simulation, which knows when they do, gets those of a node alone.
struct Pieces {
  const Job& job;
  Cutting& cutting;
  const ScheduleModel& schedule;
  const Hosts& hosts;
};

void AddStages(const Pieces& pieces, const Partition& partition, Candidate& candidate,
               schedule::TimelineCosts& costs) {
  const auto& [job, cutting, schedule, hosts] = pieces;
  costs.host_cores = hosts.cores;
  for (size_t stage = 0; stage < candidate.nodes.size(); ++stage) {
    const int node = candidate.nodes[stage];
    const NodeProfile& profile = job.eligible.nodes[node];
    const int begin = partition.bounds[stage], end = partition.bounds[stage + 1];
    const double share = ShareOf(hosts, hosts.host[stage]);
    UnitSeconds seconds = cutting.costs[node].Seconds(begin, end);
    if (partition.recompute[stage]) seconds.backward += seconds.again;
    StagePlacement& placement = candidate.plan.stages.emplace_back();
    placement.node = profile.name;
    placement.range = cutting.units.Ops(begin, end);
    placement.slots = schedule.slots()[stage];
    placement.recompute = partition.recompute[stage];
    const model::Precision precision = job.PrecisionOn(profile);
    placement.memory =
        cutting.memory.Of(begin, end, placement.slots, placement.recompute, precision);
    if (placement.recompute) {
      placement.kept_memory_bytes =
          cutting.memory.Of(begin, end, placement.slots, false, precision).total();
    }
    placement.forward_seconds = seconds.forward / share;
    placement.backward_seconds = seconds.backward / share;
    costs.forward_seconds.push_back(seconds.forward);
    costs.backward_seconds.push_back(seconds.backward);
    costs.optimizer_seconds.push_back(OptimizerSeconds(placement.memory, profile));
    costs.host.push_back(hosts.host[stage]);
    costs.threads.push_back(hosts.node_threads[stage]);
  }
}

}  // namespace

std::vector<std::string> SitesOf(const Job& job, const Candidate& candidate) {
  std::vector<std::string> sites;
  for (const int node : candidate.nodes) {
    const std::string& site = job.eligible.nodes[node].site;
    if (sites.empty() || sites.back() != site) sites.push_back(site);
  }
  return sites;
}

absl::StatusOr<SiteLeg> LegBetween(const Job& job, const NodeProfile& from, const NodeProfile& to) {
  const auto [there, back] = PairBetween(job.links, from, to);
  const double elements = job.CutElementsMax();
  LH_ASSIGN_OR_RETURN(const compression::Codec* codec,
                      ChooseCodec(job.spec.codec, elements, there, back));
  const FrameSeconds activation = FrameSecondsOf(*codec, elements, there);
  const FrameSeconds gradient = FrameSecondsOf(*codec, elements, back);
  const double latency = there.latency_seconds + back.latency_seconds;
  SiteLeg leg;
  leg.round_trip_seconds = latency + activation.total() + gradient.total();
  leg.slowest_transfer_seconds = std::max(activation.transfer, gradient.transfer);
  if (const double tied = job.TiedBytes(); tied > 0) {
    leg.tied_seconds = latency + tied / there.bytes_per_second + tied / back.bytes_per_second;
  }
  return leg;
}

absl::StatusOr<std::optional<Candidate>> Evaluate(const Job& job, Cutting& cutting,
                                                  const ScheduleModel& schedule,
                                                  const std::vector<int>& nodes) {
  const Hosts hosts = HostsOf(job.eligible.nodes, nodes);
  const std::optional<Partition> partition = PartitionOver(job, cutting, schedule, nodes, hosts);
  if (!partition.has_value()) return std::nullopt;
  Candidate candidate;
  candidate.nodes = nodes;
  candidate.plan.schedule = job.spec.schedule;
  schedule::TimelineCosts costs;
  AddStages({job, cutting, schedule, hosts}, *partition, candidate, costs);
  for (size_t stage = 0; stage + 1 < nodes.size(); ++stage) {
    const double cut_bytes = cutting.units.CutBytes(partition->bounds[stage + 1]);
    LH_RETURN_IF_ERROR(AddLink(job, cut_bytes, candidate, static_cast<int>(stage), costs));
  }
  if (nodes.size() > 1) {
    const std::vector<NodeProfile>& profiles = job.eligible.nodes;
    AddTiedTraffic(PairBetween(job.links, profiles[nodes.front()], profiles[nodes.back()]),
                   job.TiedBytes(), costs);
  }
  LH_ASSIGN_OR_RETURN(StepPrediction prediction, schedule.Predict(costs));
  candidate.plan.step_seconds = prediction.step_seconds;
  candidate.stage_busy_seconds = std::move(prediction.compute_seconds);
  return candidate;
}

}  // namespace longhaul::coordinator
