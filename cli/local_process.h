// Starting and watching processes of the local cluster.
#ifndef LONGHAUL_CLI_LOCAL_PROCESS_H_
#define LONGHAUL_CLI_LOCAL_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longhaul::cli {

// Starts `arguments` (the first is the program's path) in a session of its own, with standard input
// from /dev/null and output appended to `log`. `die_with_parent`: the kernel ends it with us.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, const std::string& log,
                            bool die_with_parent);

// Time of the process's start in clock ticks since boot, which tells it from a later process with
// the same id. NotFound if there is none, or if it is a zombie.
absl::StatusOr<uint64_t> StartTicks(pid_t pid);

// The folder of this program, where longhauld is beside it.
absl::StatusOr<std::string> ProgramFolder();

// What the longhauld beside this program says of its build: "longhauld 0.1.0, no CUDA".
absl::StatusOr<std::string> DaemonBuild();

// Lets `duration` pass.
void Pause(absl::Duration duration);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_LOCAL_PROCESS_H_
