#include "coordinator/plan/placement.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "coordinator/plan/node_sets.h"

namespace longhaul::coordinator {
namespace {

using NodeList = std::vector<int>;

// Of sets of sites that grow: sizes considered, of 1 to as many sites as stages; sets kept of a
// size, those that took the shortest ways; and site visits while they grow, for each number of
// stages.
constexpr int kSetSizesMax = 8;
constexpr size_t kSetsOfASizeMax = 4;
constexpr int kGrowingWorkMax = 2'000'000;

// The nodes of each site, by the site's name.
std::vector<NodeList> NodesBySite(absl::Span<const NodeProfile> nodes, const NodeList& chosen) {
  std::map<std::string, NodeList> by_name;
  for (const int node : chosen) by_name[nodes[node].site].push_back(node);
  std::vector<NodeList> sites;
  for (auto& [name, list] : by_name) sites.push_back(std::move(list));
  return sites;
}

// Numbers of sites, each set ascending.
std::set<std::vector<int>> AllSiteSets(int sites) {
  std::set<std::vector<int>> sets;
  for (int mask = 1; mask < 1 << sites; ++mask) {
    std::vector<int> set;
    for (int site = 0; site < sites; ++site) {
      if (mask >> site & 1) set.push_back(site);
    }
    sets.insert(std::move(set));
  }
  return sets;
}

// A set that grew from one site, and the length of the way it took.
struct GrownSet {
  double length = 0;
  std::vector<int> sites;
};

// Grows a set from `start`, each time by the site nearest to any of it. `take` hears of it after
// each one.
void Grow(const PlacementProblem& problem, const std::vector<NodeList>& sites, int start,
          absl::FunctionRef<void(const GrownSet& set)> take) {
  const int count = static_cast<int>(sites.size());
  std::vector<double> distance(count, std::numeric_limits<double>::infinity());
  std::vector<bool> taken(count, false);
  GrownSet set;
  for (int newest = start; newest >= 0;) {
    if (newest != start) set.length += distance[newest];
    taken[newest] = true;
    set.sites.push_back(newest);
    take(set);
    const int from = sites[newest].front();
    newest = -1;
    for (int site = 0; site < count; ++site) {
      if (taken[site]) continue;
      const SiteLeg& leg = problem.legs[from][sites[site].front()];
      distance[site] = std::min(distance[site], leg.round_trip_seconds);
      if (newest < 0 || distance[site] < distance[newest]) newest = site;
    }
  }
}

std::set<std::vector<int>> GrowingSiteSets(const PlacementProblem& problem,
                                           const std::vector<NodeList>& sites) {
  const int count = static_cast<int>(sites.size());
  const int largest = std::min(count, static_cast<int>(problem.slots.size()));
  std::map<size_t, std::vector<GrownSet>> by_size;
  for (int i = 0; i < kSetSizesMax; ++i) by_size[1 + i * (largest - 1) / (kSetSizesMax - 1)];
  const int starts = std::clamp(kGrowingWorkMax / (count * count), 1, count);
  for (int i = 0; i < starts; ++i) {
    const int start = static_cast<int>(int64_t{i} * count / starts);
    Grow(problem, sites, start, [&](const GrownSet& set) {
      if (const auto same_size = by_size.find(set.sites.size()); same_size != by_size.end()) {
        same_size->second.push_back(set);
      }
    });
  }
  std::set<std::vector<int>> sets;
  for (auto& [size, grown] : by_size) {
    std::stable_sort(grown.begin(), grown.end(),
                     [](const GrownSet& a, const GrownSet& b) { return a.length < b.length; });
    std::set<std::vector<int>> kept;
    for (GrownSet& set : grown) {
      if (kept.size() == kSetsOfASizeMax) break;
      std::sort(set.sites.begin(), set.sites.end());
      kept.insert(std::move(set.sites));
    }
    sets.merge(kept);
  }
  return sets;
}

// Of the nodes of one site and numeric class only as many, the fastest, as may each have the
// replicas.
NodeList WithRoomForReplicas(const PlacementProblem& problem, NodeList from) {
  using Kind = std::pair<std::string, std::string>;
  const auto kind_of = [&](int node) {
    return Kind{problem.nodes[node].site, problem.nodes[node].numeric_class};
  };
  std::map<Kind, int> rest;
  for (const int node : from) ++rest[kind_of(node)];
  for (auto& [kind, count] : rest) count /= problem.replicas;
  std::stable_sort(from.begin(), from.end(), [&](int a, int b) {
    return problem.model_seconds[a] < problem.model_seconds[b];
  });
  NodeList leaders;
  for (const int node : from) {
    if (rest[kind_of(node)]-- > 0) leaders.push_back(node);
  }
  std::sort(leaders.begin(), leaders.end());
  return leaders;
}

std::set<NodeList> NodeSets(const PlacementProblem& problem) {
  const int stages = static_cast<int>(problem.slots.size());
  NodeList all;
  for (size_t node = 0; node < problem.nodes.size(); ++node) all.push_back(static_cast<int>(node));
  const std::vector<NodeList> sites = NodesBySite(problem.nodes, all);
  const int site_count = static_cast<int>(sites.size());
  const std::set<std::vector<int>> site_sets =
      site_count <= kExhaustiveSitesMax ? AllSiteSets(site_count) : GrowingSiteSets(problem, sites);
  std::set<NodeList> sets;
  for (const std::vector<int>& site_set : site_sets) {
    NodeList from;
    for (const int site : site_set) from.insert(from.end(), sites[site].begin(), sites[site].end());
    std::sort(from.begin(), from.end());
    if (static_cast<int>(site_set.size()) > stages || static_cast<int>(from.size()) < stages) {
      continue;
    }
    sets.insert(FastestNodes(problem.nodes, problem.model_seconds, from, stages));
    sets.insert(RoomiestNodes(problem.nodes, from, stages));
    if (problem.replicas == 1) continue;
    const NodeList leaders = WithRoomForReplicas(problem, from);
    if (static_cast<int>(leaders.size()) < stages) continue;
    sets.insert(FastestNodes(problem.nodes, problem.model_seconds, leaders, stages));
  }
  return sets;
}

// A site's nodes by `before`, those of one host side by side.
template <typename Before>
NodeList OrderWithinSite(absl::Span<const NodeProfile> nodes, NodeList site, Before before) {
  std::stable_sort(site.begin(), site.end(), before);
  NodeList ordered;
  std::set<int> taken;
  for (const int first : site) {
    for (const int node : site) {
      const bool same_host =
          node == first || (!nodes[first].host.empty() && nodes[node].host == nodes[first].host);
      if (same_host && taken.insert(node).second) ordered.push_back(node);
    }
  }
  return ordered;
}

// The orders of the whole pipeline for one order of its sites.
void AppendOrders(const PlacementProblem& problem, const std::vector<NodeList>& sites,
                  const std::vector<int>& site_order, std::vector<NodeList>& orders) {
  const auto append = [&](auto before) {
    NodeList order;
    for (const int site : site_order) {
      const NodeList part = OrderWithinSite(problem.nodes, sites[site], before);
      order.insert(order.end(), part.begin(), part.end());
    }
    if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(order);
  };
  const std::vector<double>& seconds = problem.model_seconds;
  append(
      [&](int a, int b) { return problem.nodes[a].memory_bytes > problem.nodes[b].memory_bytes; });
  append([&](int a, int b) { return seconds[a] < seconds[b]; });
  append([&](int a, int b) { return seconds[a] > seconds[b]; });
}

Placement PlaceSet(const PlacementProblem& problem, const NodeList& set) {
  const std::vector<NodeList> sites = NodesBySite(problem.nodes, set);
  SiteOrderProblem order_problem;
  order_problem.slots = problem.slots;
  order_problem.micro_batches = problem.micro_batches;
  order_problem.stage_seconds = 1 / CombinedRate(problem.nodes, problem.model_seconds, set);
  for (const NodeList& from : sites) {
    order_problem.stages.push_back(static_cast<int>(from.size()));
    std::vector<SiteLeg>& legs = order_problem.legs.emplace_back();
    for (const NodeList& to : sites) {
      legs.push_back(&from == &to ? SiteLeg{} : problem.legs[from.front()][to.front()]);
    }
  }
  std::vector<int> site_order = BestSiteOrder(order_problem);
  Placement placement;
  placement.estimated_seconds = EstimateStep(order_problem, site_order);
  AppendOrders(problem, sites, site_order, placement.orders);
  std::reverse(site_order.begin(), site_order.end());
  AppendOrders(problem, sites, site_order, placement.orders);
  return placement;
}

}  // namespace

std::vector<Placement> Placements(const PlacementProblem& problem) {
  std::vector<Placement> placements;
  for (const NodeList& set : NodeSets(problem)) placements.push_back(PlaceSet(problem, set));
  std::stable_sort(placements.begin(), placements.end(),
                   [](const Placement& a, const Placement& b) {
                     return a.estimated_seconds < b.estimated_seconds;
                   });
  return placements;
}

}  // namespace longhaul::coordinator
