#include "coordinator/plan/node_sets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "absl/functional/function_ref.h"
#include "coordinator/plan/host_sharing.h"

namespace longhaul::coordinator {
namespace {

// More speed first, then more memory.
struct Worth {
  double rate = 0;
  int64_t memory_bytes = 0;
  auto operator<=>(const Worth&) const = default;
};

// By node.
std::vector<int> SiteNumbers(absl::Span<const NodeProfile> nodes) {
  std::map<std::string, int> known;
  std::vector<int> numbers;
  for (const NodeProfile& node : nodes) {
    numbers.push_back(known.try_emplace(node.site, known.size()).first->second);
  }
  return numbers;
}

// Takes `count` of `from`, each time the first of those worth most; while sites are missing, only
// nodes of those. `take` hears of each one.
std::vector<int> TakeBest(absl::Span<const NodeProfile> nodes, std::vector<int> from, int count,
                          absl::FunctionRef<Worth(int node)> worth,
                          absl::FunctionRef<void(int node)> take) {
  const std::vector<int> site = SiteNumbers(nodes);
  std::vector<bool> missing(nodes.size(), false);
  for (const int node : from) missing[site[node]] = true;
  auto missing_count = std::count(missing.begin(), missing.end(), true);
  std::vector<int> chosen;
  while (static_cast<int>(chosen.size()) < count) {
    auto best = from.end();
    Worth best_worth;
    for (auto it = from.begin(); it != from.end(); ++it) {
      if (missing_count > 0 && !missing[site[*it]]) continue;
      const Worth it_worth = worth(*it);
      if (best != from.end() && it_worth <= best_worth) continue;
      best = it;
      best_worth = it_worth;
    }
    missing_count -= missing[site[*best]] ? 1 : 0;
    missing[site[*best]] = false;
    take(*best);
    chosen.push_back(*best);
    from.erase(best);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// What the chosen nodes of one host do together.
struct HostLoad {
  double rate = 0;  // models a second, if each were alone
  double threads = 0;
  double Shared(double cores) const {
    return cores > 0 && threads > cores ? rate * cores / threads : rate;
  }
};

}  // namespace

double CombinedRate(absl::Span<const NodeProfile> nodes, absl::Span<const double> model_seconds,
                    absl::Span<const int> chosen) {
  const Hosts hosts = HostsOf(nodes, chosen);
  double rate = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    rate += ShareOf(hosts, hosts.host[i]) / model_seconds[chosen[i]];
  }
  return rate;
}

std::vector<int> FastestNodes(absl::Span<const NodeProfile> nodes,
                              absl::Span<const double> model_seconds, const std::vector<int>& from,
                              int count) {
  std::vector<int> all(nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const Hosts hosts = HostsOf(nodes, all);
  std::vector<HostLoad> loads(hosts.cores.size());
  const auto with = [&](int node) {
    HostLoad load = loads[hosts.host[node]];
    load.rate += 1 / model_seconds[node];
    load.threads += hosts.node_threads[node];
    return load;
  };
  const auto worth = [&](int node) {
    const double cores = hosts.cores[hosts.host[node]];
    const double before = loads[hosts.host[node]].Shared(cores);
    return Worth{with(node).Shared(cores) - before, nodes[node].memory_bytes};
  };
  return TakeBest(nodes, from, count, worth,
                  [&](int node) { loads[hosts.host[node]] = with(node); });
}

std::vector<int> RoomiestNodes(absl::Span<const NodeProfile> nodes, const std::vector<int>& from,
                               int count) {
  const auto worth = [&](int node) { return Worth{0, nodes[node].memory_bytes}; };
  return TakeBest(nodes, from, count, worth, [](int) {});
}

}  // namespace longhaul::coordinator
