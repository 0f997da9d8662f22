#include "coordinator/plan/host_sharing.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace longhaul::coordinator {
namespace {

// What the node shares with others: equal for those that do; empty: nothing.
std::string SharedKey(const NodeProfile& node) {
  if (node.device_kind == DeviceKind::kCpu) {
    return node.host.empty() ? "" : absl::StrCat("host ", node.host);
  }
  return node.device_uuid.empty() ? "" : absl::StrCat("card ", node.device_uuid);
}

int CoresOf(const NodeProfile& node) {
  return node.device_kind == DeviceKind::kCpu ? node.host_cores : 1;
}

int ThreadsOf(const NodeProfile& node) {
  return node.device_kind == DeviceKind::kCpu ? node.threads : 1;
}

}  // namespace

Hosts HostsOf(absl::Span<const NodeProfile> nodes, absl::Span<const int> chosen) {
  Hosts hosts;
  std::map<std::string, int> known;
  for (const int node : chosen) {
    const NodeProfile& profile = nodes[node];
    int host = static_cast<int>(hosts.cores.size());
    const std::string key = SharedKey(profile);
    if (!key.empty()) host = known.try_emplace(key, host).first->second;
    if (host == static_cast<int>(hosts.cores.size())) {
      hosts.cores.push_back(0);
      hosts.threads.push_back(0);
    }
    hosts.host.push_back(host);
    double& cores = hosts.cores[host];
    const int own = CoresOf(profile);
    if (own > 0 && (cores == 0 || own < cores)) cores = own;
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double cores = hosts.cores[hosts.host[i]];
    const double threads = ThreadsOf(nodes[chosen[i]]);
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
