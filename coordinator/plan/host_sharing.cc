#include "coordinator/plan/host_sharing.h"

#include <algorithm>
#include <map>
#include <string>

namespace longhaul::coordinator {

Hosts HostsOf(absl::Span<const NodeProfile> nodes, absl::Span<const int> chosen) {
  Hosts hosts;
  std::map<std::string, int> known;
  for (const int node : chosen) {
    const NodeProfile& profile = nodes[node];
    int host = static_cast<int>(hosts.cores.size());
    if (!profile.host.empty()) host = known.try_emplace(profile.host, host).first->second;
    if (host == static_cast<int>(hosts.cores.size())) {
      hosts.cores.push_back(0);
      hosts.threads.push_back(0);
    }
    hosts.host.push_back(host);
    double& cores = hosts.cores[host];
    if (profile.host_cores > 0 && (cores == 0 || profile.host_cores < cores)) {
      cores = profile.host_cores;
    }
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double cores = hosts.cores[hosts.host[i]];
    const double threads = nodes[chosen[i]].threads;
    hosts.node_threads.push_back(cores > 0 ? std::min(threads, cores) : threads);
    hosts.threads[hosts.host[i]] += hosts.node_threads[i];
  }
  return hosts;
}

double ShareOf(const Hosts& hosts, int host) {
  if (hosts.cores[host] == 0) return 1;
  return std::min(1.0, hosts.cores[host] / hosts.threads[host]);
}

}  // namespace longhaul::coordinator
