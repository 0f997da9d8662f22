// Following a run on the terminal.
#ifndef LONGHAUL_CLI_FOLLOW_H_
#define LONGHAUL_CLI_FOLLOW_H_

#include <cstdint>
#include <memory>
#include <string>

#include "cli/client.h"
#include "cli/context.h"

namespace longhaul::cli {

// The ends of a run that a command was asked to bring about: for `run stop` a stop is one too.
enum class GoodEnd { kDone, kDoneOrStopped };

struct FollowOptions {
  uint64_t after_step = 0;
  GoodEnd good = GoodEnd::kDone;
  std::string told = "";  // the reason of the run's state that the person has read already
};

// Follows a run to its rest: a progress bar, or one JSON object a step. A coordinator that goes
// away is said once on stderr and waited for, some minutes at most; then the steps go on behind the
// last one shown. Returns the exit code: kExitDone for a good end; any other is kExitFailed and
// said with its reason on stderr.
int FollowRun(const Context& context, std::unique_ptr<Client> client, const std::string& run,
              const FollowOptions& options);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_FOLLOW_H_
