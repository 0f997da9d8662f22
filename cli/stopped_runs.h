// What becomes of the runs of a cluster that is being stopped.
#ifndef LONGHAUL_CLI_STOPPED_RUNS_H_
#define LONGHAUL_CLI_STOPPED_RUNS_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "cli/client.h"
#include "cli/context.h"

namespace longhaul::cli {

// One thread. Every call is bounded; a coordinator that does not answer is said on stderr and
// otherwise as one without runs, since a cluster must be stoppable in any state.
class StoppedRuns {
 public:
  // Asks, before the workers are stopped, which runs they work for.
  explicit StoppedRuns(const Context& context);

  // After the workers have gone and while the coordinator is still there: waits some seconds for
  // each of those runs to come to rest and prints how: at which step, with which checkpoint.
  void PrintEnds(const Context& context);

 private:
  absl::Status Ask(const Context& context);

  std::unique_ptr<Client> client_;  // null if the coordinator did not answer
  std::set<std::string> active_;
};

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_STOPPED_RUNS_H_
