#include "daemon/reload.h"

namespace longhaul::daemon {

std::vector<std::string> NeedRestart(const CoordinatorConfig& running,
                                     const CoordinatorConfig& wanted) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key, auto member) {
    if (running.*member != wanted.*member) keys.push_back(key);
  };
  compare("listen", &CoordinatorConfig::listen);
  compare("folder", &CoordinatorConfig::folder);
  compare("tls, cluster_token_file or insecure", &CoordinatorConfig::security);
  compare("lease", &CoordinatorConfig::lease);
  compare("prepare_max", &CoordinatorConfig::prepare_max);
  compare("ending_max", &CoordinatorConfig::ending_max);
  compare("checkpoints_kept", &CoordinatorConfig::checkpoints_kept);
  compare("links", &CoordinatorConfig::links);
  compare("metrics", &CoordinatorConfig::metrics);
  return keys;
}

std::vector<std::string> NeedRestart(const WorkerConfig& running, const WorkerConfig& wanted) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key, auto member) {
    if (running.*member != wanted.*member) keys.push_back(key);
  };
  compare("name", &WorkerConfig::name);
  compare("site", &WorkerConfig::site);
  compare("coordinator", &WorkerConfig::coordinator);
  compare("coordinator_name", &WorkerConfig::coordinator_name);
  compare("data.listen", &WorkerConfig::data_listen);
  compare("data.advertise", &WorkerConfig::data_advertise);
  compare("data.connections", &WorkerConfig::connections);
  compare("trusted_network", &WorkerConfig::trusted_network);
  compare("folder", &WorkerConfig::folder);
  compare("device", &WorkerConfig::cuda_device);
  compare("share_device", &WorkerConfig::share_device);
  compare("nccl", &WorkerConfig::nccl);
  compare("threads", &WorkerConfig::threads);
  compare("memory", &WorkerConfig::memory_bytes);
  compare("peer_wait_max", &WorkerConfig::peer_wait_max);
  compare("transfer_max", &WorkerConfig::transfer_max);
  compare("drain_max", &WorkerConfig::drain_max);
  compare("tls, cluster_token_file or insecure", &WorkerConfig::security);
  compare("metrics", &WorkerConfig::metrics);
  return keys;
}

}  // namespace longhaul::daemon
