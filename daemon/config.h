// What the configuration files say, checked.
#ifndef LONGHAUL_DAEMON_CONFIG_H_
#define LONGHAUL_DAEMON_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/log.h"
#include "daemon/values.h"

namespace longhaul::daemon {

// Paths of PEM files. The certificate file may hold a chain; `ca` signs everybody's certificate.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;
  bool operator==(const TlsFiles&) const = default;
};

// How the daemon knows its peers: mutual TLS, or a secret that all of the cluster share.
struct SecurityConfig {
  std::optional<TlsFiles> tls;
  std::string cluster_token_file;  // set exactly where TLS is off
  bool insecure = false;           // the user wrote that a network may see and change the traffic
  bool operator==(const SecurityConfig&) const = default;
};

// Prometheus endpoint (plain HTTP); absent: off.
struct MetricsConfig {
  std::optional<Address> listen;
  bool insecure = false;  // allows an address that is not loopback
  bool operator==(const MetricsConfig&) const = default;
};

// A directed link between two sites, for the planner. Same keys as in a topology file.
struct LinkConfig {
  std::string from, to;
  double latency_milliseconds = 0;
  double megabits_per_second = 0;
  bool operator==(const LinkConfig&) const = default;
};

struct CoordinatorConfig {
  Address listen{"127.0.0.1", 7070};
  std::string folder;
  SecurityConfig security;
  absl::Duration lease = absl::Seconds(10);
  // Of a run's nodes together, before its first step and after its last.
  absl::Duration prepare_max = absl::Minutes(10);
  absl::Duration ending_max = absl::Minutes(10);
  int checkpoints_kept = 3;  // of each run
  std::vector<LinkConfig> links;
  LogLevel log_level = LogLevel::kInfo;
  MetricsConfig metrics;
  std::string security_place;  // "FILE:LINE: 'KEY'" of what names the files of `security`
};

struct WorkerConfig {
  std::string name;  // empty: the one that is stored in the folder, made from the host's at first
  std::string site;
  Address coordinator{"127.0.0.1", 7070};
  std::string coordinator_name = "coordinator";  // in its certificate
  Address data_listen{"127.0.0.1", 0};
  std::optional<Address> data_advertise;  // port 0: the one that is listened on
  std::string folder;
  std::optional<int> cuda_device;               // number of a card; none: processor cores
  bool share_device = false;                    // the card, with other workers that say so too
  bool nccl = true;                             // may sum gradients between cards
  int threads = 0;                              // 0: every core that the process may use
  int64_t memory_bytes = 0;                     // of the device; 0: most of what is free at start
  int connections = 1;                          // parallel streams to each peer
  bool trusted_network = false;                 // of the site: replicas may sum gradients over it
  std::optional<absl::Duration> peer_wait_max;  // of a peer that is not heard; none: the lease
  absl::Duration transfer_max = absl::Minutes(10);
  absl::Duration drain_max = absl::Minutes(5);  // from SIGTERM to leaving in any case
  SecurityConfig security;
  LogLevel log_level = LogLevel::kInfo;
  MetricsConfig metrics;
  std::string security_place;  // as the coordinator's
};

// Reads the text of a file. Relative paths in it count from the file's folder. InvalidArgument
// begins with file and line and says what would be right: unknown keys, wrong values, a
// non-loopback address without TLS and without `insecure: true`, neither TLS nor a cluster token.
absl::StatusOr<CoordinatorConfig> ParseCoordinatorConfig(absl::string_view yaml,
                                                         const std::string& file_name);
absl::StatusOr<WorkerConfig> ParseWorkerConfig(absl::string_view yaml,
                                               const std::string& file_name);

// The file's text; the error names the path.
absl::StatusOr<std::string> ReadConfigFile(const std::string& path);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_CONFIG_H_
