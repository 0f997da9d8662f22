// Figures for Prometheus.
#ifndef LONGHAUL_DAEMON_TELEMETRY_H_
#define LONGHAUL_DAEMON_TELEMETRY_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/values.h"

namespace longhaul::daemon {

// One figure at the time it is asked for.
struct Figure {
  std::string name;  // with unit, as Prometheus wants it: "longhaul_run_step"
  std::string help;
  bool is_counter = false;  // rises only, since the start of the process; else a gauge
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

// Serves GET /metrics until destroyed. `collect` is called from its threads.
class Telemetry {
 public:
  // The error names the address.
  static absl::StatusOr<std::unique_ptr<Telemetry>> Serve(
      const Address& address, std::function<std::vector<Figure>()> collect);
  ~Telemetry();

  // The port that was chosen, where the address had 0.
  int port() const;

 private:
  class Impl;
  explicit Telemetry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_TELEMETRY_H_
