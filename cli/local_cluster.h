// A local cluster of real daemons: folders, configurations, processes.
//   DIR/cluster.json        what runs: addresses and processes
//   DIR/token               the cluster's secret, readable by this user only
//   DIR/coordinator/        configuration, state, log
//   DIR/worker-N/           configuration, state, log
#ifndef LONGHAUL_CLI_LOCAL_CLUSTER_H_
#define LONGHAUL_CLI_LOCAL_CLUSTER_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longhaul::cli {

// One daemon. A process is known by its id and start time, since ids are used again.
struct LocalProcess {
  std::string name;  // "coordinator", "worker-1"
  pid_t pid = 0;
  uint64_t start_ticks = 0;
};

struct LocalCluster {
  std::string coordinator;  // host:port
  std::vector<LocalProcess> processes;
};

struct LocalClusterOptions {
  std::string dir;
  int workers = 4;
  int sites = 2;
  int threads = 0;      // of each worker; 0: the cores shared out evenly, at least one
  bool detach = false;  // false: the daemons die with this process
};

// What DIR/cluster.json says; nothing if there is no such file.
absl::StatusOr<std::optional<LocalCluster>> ReadLocalCluster(const std::string& dir);
std::string LocalTokenFile(const std::string& dir);

bool IsAlive(const LocalProcess& process);

// Writes folders and configurations and starts the daemons. Refused while a cluster of this folder
// is alive. On an error nothing is left running. Runs and data of an earlier cluster in the folder
// are kept.
absl::StatusOr<LocalCluster> StartLocalCluster(const LocalClusterOptions& options);

// Those of the processes that still run.
std::vector<LocalProcess> Alive(const std::vector<LocalProcess>& processes);

// SIGTERM (workers first, so that they can leave their run in order), a second one after
// `patience`, SIGKILL after twice that. Calls `workers_gone` in between, while the coordinator is
// still there. Waits until all are gone; the error names who is still there.
absl::Status StopLocalCluster(const LocalCluster& cluster, absl::Duration patience,
                              absl::FunctionRef<void()> workers_gone);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_LOCAL_CLUSTER_H_
