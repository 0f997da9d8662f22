#include "coordinator/plan/reasons.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compression/codec.h"
#include "coordinator/plan/format.h"
#include "coordinator/plan/host_sharing.h"

namespace longhaul::coordinator {
namespace {

// What is busy for this part of a step or more limits it; below that, waiting does.
constexpr double kLimitsFrom = 0.5;

int StageCount(const Candidate& candidate) { return static_cast<int>(candidate.nodes.size()); }

std::string Compared(const Candidate& candidate, const Candidate& chosen) {
  return FormatComparison(candidate.plan.step_seconds, chosen.plan.step_seconds);
}

// The fastest candidate of each other number of stages.
std::map<int, const Candidate*> OtherCounts(const Decision& decision) {
  std::map<int, const Candidate*> best;
  for (const Candidate& candidate : decision.candidates) {
    const Candidate*& known = best[StageCount(candidate)];
    if (known == nullptr || candidate.plan.step_seconds < known->plan.step_seconds) {
      known = &candidate;
    }
  }
  best.erase(StageCount(decision.candidates[decision.chosen]));
  return best;
}

std::string WhyThisManyStages(const Job& job, const Decision& decision) {
  const Candidate& chosen = decision.candidates[decision.chosen];
  const double tokens =
      static_cast<double>(job.spec.train.global_batch) * static_cast<double>(job.graph.context);
  std::string text = absl::StrCat(
      FormatCount(StageCount(chosen), "stage"), decision.stages_fixed ? ", as asked for" : "",
      ": a step is predicted to take ", FormatSeconds(chosen.plan.step_seconds), ", ",
      absl::StrFormat("%.0f", tokens / chosen.plan.step_seconds), " tokens/s.");
  std::vector<const Candidate*> others;
  for (const auto& [count, candidate] : OtherCounts(decision)) others.push_back(candidate);
  std::stable_sort(others.begin(), others.end(), [](const Candidate* a, const Candidate* b) {
    return a->plan.step_seconds < b->plan.step_seconds;
  });
  if (!others.empty()) {
    absl::StrAppend(&text, " The next best number of stages, ", StageCount(*others[0]),
                    ", would take ", Compared(*others[0], chosen));
    if (others.size() > 1 && StageCount(*others[0]) != 1 && StageCount(*others.back()) == 1) {
      absl::StrAppend(&text, ", one stage ", Compared(*others.back(), chosen));
    }
    absl::StrAppend(&text, ".");
  }
  if (!decision.counts_not_fitting.empty()) {
    absl::StrAppend(&text, " Of ", absl::StrJoin(decision.counts_not_fitting, ", "),
                    decision.counts_not_fitting == std::vector<int>{1} ? " stage" : " stages",
                    " some would not fit into the nodes' memory.");
  }
  return text;
}

size_t Busiest(const std::vector<double>& seconds) {
  return std::max_element(seconds.begin(), seconds.end()) - seconds.begin();
}

const NodeProfile& NodeOf(const Job& job, const Candidate& candidate, size_t stage) {
  return job.eligible.nodes[candidate.nodes[stage]];
}

bool SharesItsHost(const Job& job, const Candidate& candidate, size_t stage) {
  const Hosts hosts = HostsOf(job.eligible.nodes, candidate.nodes);
  return ShareOf(hosts, hosts.host[stage]) < 1;
}

std::string WhatLimits(const Job& job, const Candidate& chosen) {
  const double step = chosen.plan.step_seconds;
  const size_t stage = Busiest(chosen.stage_busy_seconds);
  const double stage_busy = chosen.stage_busy_seconds[stage] / step;
  const StagePlacement& placement = chosen.plan.stages[stage];
  const std::string compute = absl::StrCat(
      "computing of stage ", stage, " on node ", placement.node, ": ",
      FormatSeconds(placement.forward_seconds + placement.backward_seconds), " a micro-batch",
      SharesItsHost(job, chosen, stage) ? " while the host's nodes all work" : "", ", busy ",
      FormatPercent(stage_busy), " of the step");
  if (chosen.link_busy_seconds.empty()) return absl::StrCat("What limits: ", compute, ".");

  const size_t link = Busiest(chosen.link_busy_seconds);
  const double link_busy = chosen.link_busy_seconds[link] / step;
  const NodeProfile& from = NodeOf(job, chosen, link);
  const NodeProfile& to = NodeOf(job, chosen, link + 1);
  const Link there = job.links.Between(from, to);
  const Link back = job.links.Between(to, from);
  const std::string transfer =
      absl::StrCat("link ", link, " from node ", from.name, " to ", to.name, " at ",
                   FormatRate(std::min(there.bytes_per_second, back.bytes_per_second)), ": ",
                   FormatSeconds(chosen.link_busy_seconds[link] / job.micro_batches()),
                   " a frame, busy ", FormatPercent(link_busy), " of the step");
  const std::string limit = link_busy > stage_busy ? transfer : compute;
  if (std::max(link_busy, stage_busy) >= kLimitsFrom)
    return absl::StrCat("What limits: ", limit, ".");
  double latency = 0;
  for (size_t s = 0; s + 1 < chosen.nodes.size(); ++s) {
    latency +=
        job.links.Between(NodeOf(job, chosen, s), NodeOf(job, chosen, s + 1)).latency_seconds;
  }
  return absl::StrCat("What limits: filling and draining the pipeline and the links' latencies (",
                      FormatSeconds(latency), " one way) over ", job.micro_batches(),
                      " micro-batch", job.micro_batches() == 1 ? "" : "es",
                      "; more and smaller micro-batches would help. Busiest is ", limit, ".");
}

// The fastest candidate with as many stages on other nodes or in another order of sites.
const Candidate* NextBestPlacement(const Job& job, const Decision& decision) {
  const Candidate& chosen = decision.candidates[decision.chosen];
  const auto sorted = [](std::vector<int> nodes) {
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  };
  const Candidate* best = nullptr;
  for (const Candidate& candidate : decision.candidates) {
    if (StageCount(candidate) != StageCount(chosen)) continue;
    if (sorted(candidate.nodes) == sorted(chosen.nodes) &&
        SitesOf(job, candidate) == SitesOf(job, chosen)) {
      continue;
    }
    if (best == nullptr || candidate.plan.step_seconds < best->plan.step_seconds) best = &candidate;
  }
  return best;
}

std::string NodeNames(const Candidate& candidate) {
  return absl::StrJoin(
      candidate.plan.stages, ", ",
      [](std::string* out, const StagePlacement& stage) { absl::StrAppend(out, stage.node); });
}

std::string WhyThisPlacement(const Job& job, const Decision& decision) {
  const Candidate& chosen = decision.candidates[decision.chosen];
  const std::vector<std::string> sites = SitesOf(job, chosen);
  std::string text;
  if (sites.size() == 1) {
    text =
        absl::StrCat("Placement: all stages are in site ", sites[0], ", so no link crosses sites.");
  } else {
    text = absl::StrCat("Placement: the stages of a site are neighbours, in the order ",
                        absl::StrJoin(sites, ", "), ", so only ", chosen.plan.wan_links, " of ",
                        FormatCount(StageCount(chosen) - 1, "link"),
                        chosen.plan.wan_links == 1 ? " crosses sites." : " cross sites.");
  }
  if (const Candidate* next = NextBestPlacement(job, decision); next != nullptr) {
    absl::StrAppend(&text, " The next best, on ", NodeNames(*next), ", would take ",
                    Compared(*next, chosen), ".");
  }
  return text;
}

void AddCodecs(const Job& job, const Candidate& chosen, std::vector<std::string>& reasons) {
  const std::vector<std::string>& codecs = chosen.plan.link_codecs;
  if (codecs.empty()) return;
  if (job.spec.codec != "auto") {
    const absl::StatusOr<const compression::Codec*> codec = compression::FindCodec(job.spec.codec);
    reasons.push_back(absl::StrCat(
        "Codec ", job.spec.codec, " on every link, as exchange.codec says",
        codec.ok() && !(*codec)->lossless() ? "; it is lossy, so results depend on the cuts."
                                            : "."));
    return;
  }
  std::map<std::string, std::vector<std::string>> links;
  for (size_t link = 0; link < codecs.size(); ++link) {
    const Link there = job.links.Between(NodeOf(job, chosen, link), NodeOf(job, chosen, link + 1));
    links[codecs[link]].push_back(
        absl::StrCat("link ", link, " (", FormatRate(there.bytes_per_second), ")"));
  }
  for (const auto& [codec, names] : links) {
    reasons.push_back(
        absl::StrCat("Codec ", codec, " on ", JoinWords(names),
                     codec == "none" ? ": compressing would take longer than it saves."
                                     : ": sending fewer bytes saves more than compressing takes."));
  }
}

void AddSharedHosts(const Job& job, const Candidate& chosen, std::vector<std::string>& reasons) {
  const Hosts hosts = HostsOf(job.eligible.nodes, chosen.nodes);
  for (size_t host = 0; host < hosts.cores.size(); ++host) {
    const double share = ShareOf(hosts, static_cast<int>(host));
    if (share >= 1) continue;
    std::vector<std::string> names;
    const NodeProfile* one = nullptr;
    for (size_t stage = 0; stage < chosen.nodes.size(); ++stage) {
      if (hosts.host[stage] != static_cast<int>(host)) continue;
      one = &NodeOf(job, chosen, stage);
      names.push_back(one->name);
    }
    const std::string what =
        one->device_kind == DeviceKind::kCuda
            ? absl::StrCat(" share the card ", one->device_uuid)
            : absl::StrCat(" run ", hosts.threads[host], " threads on the ",
                           FormatCount(static_cast<int64_t>(hosts.cores[host]), "core"),
                           " of host ", one->host);
    reasons.push_back(absl::StrCat(names.size() == 1 ? "Node " : "Nodes ", JoinWords(names), what,
                                   ": while all work, each has ", FormatPercent(share),
                                   " of its speed."));
  }
}

void AddRecomputation(const Job& job, const Candidate& chosen, std::vector<std::string>& reasons) {
  for (size_t stage = 0; stage < chosen.plan.stages.size(); ++stage) {
    const StagePlacement& placement = chosen.plan.stages[stage];
    if (!placement.recompute) continue;
    const double needed = static_cast<double>(placement.memory.total());
    const double kept = static_cast<double>(placement.kept_memory_bytes);
    const double available = static_cast<double>(NodeOf(job, chosen, stage).memory_bytes);
    reasons.push_back(absl::StrCat(
        "Stage ", stage, " makes activations again in backward",
        job.spec.recompute == run::Recompute::kAlways ? ", as asked for" : "", ": it needs ",
        FormatMebibytes(needed), ", and ", FormatMebibytes(kept), " otherwise; node ",
        placement.node, " has ", FormatMebibytes(available), "."));
  }
}

double RateOf(const Job& job, const NodeProfile& node) {
  return FlopsPerSecond(node, job.spec.train.precision);
}

// What the best plan with the node would have been, or how slow the node is; empty: neither tells.
std::string WhyUnused(const Job& job, const Decision& decision, int node) {
  const Candidate& chosen = decision.candidates[decision.chosen];
  const Candidate* best = nullptr;
  for (const Candidate& candidate : decision.candidates) {
    const auto& used = candidate.nodes;
    if (std::find(used.begin(), used.end(), node) == used.end()) continue;
    if (best == nullptr || candidate.plan.step_seconds < best->plan.step_seconds) best = &candidate;
  }
  if (best != nullptr) {
    return absl::StrCat(": the best plan tried with it, of ",
                        FormatCount(StageCount(*best), "stage"), ", would take ",
                        Compared(*best, chosen));
  }
  double slowest = RateOf(job, NodeOf(job, chosen, 0));
  for (size_t stage = 1; stage < chosen.nodes.size(); ++stage) {
    slowest = std::min(slowest, RateOf(job, NodeOf(job, chosen, stage)));
  }
  const double rate = RateOf(job, job.eligible.nodes[node]);
  if (rate >= slowest) return "";
  return absl::StrCat(": ", FormatFlops(rate), ", where the slowest that is used has ",
                      FormatFlops(slowest));
}

void AddUnusedNodes(const Job& job, const Decision& decision, std::vector<std::string>& reasons) {
  const std::vector<int>& used = decision.candidates[decision.chosen].nodes;
  std::map<std::string, std::vector<std::string>> unused;  // names by why
  for (size_t node = 0; node < job.eligible.nodes.size(); ++node) {
    const int index = static_cast<int>(node);
    if (std::find(used.begin(), used.end(), index) != used.end()) continue;
    unused[WhyUnused(job, decision, index)].push_back(job.eligible.nodes[node].name);
  }
  for (const auto& [why, names] : unused) {
    reasons.push_back(absl::StrCat(names.size() == 1 ? "Node " : "Nodes ", JoinWords(names),
                                   names.size() == 1 ? " is" : " are", " not used", why, "."));
  }
}

}  // namespace

std::vector<std::string> Reasons(const Job& job, const Decision& decision) {
  const Candidate& chosen = decision.candidates[decision.chosen];
  std::vector<std::string> reasons = {WhyThisManyStages(job, decision), WhatLimits(job, chosen),
                                      WhyThisPlacement(job, decision)};
  AddCodecs(job, chosen, reasons);
  AddRecomputation(job, chosen, reasons);
  AddSharedHosts(job, chosen, reasons);
  AddUnusedNodes(job, decision, reasons);
  for (const std::string& sentence : job.eligible.excluded) reasons.push_back(sentence + ".");
  if (!decision.tried_all) {
    reasons.push_back(
        "Not every number of stages, set of nodes and order of sites was tried, since there are so "
        "many: another plan may be better.");
  }
  return reasons;
}

}  // namespace longhaul::coordinator
