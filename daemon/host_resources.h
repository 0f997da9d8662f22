// What this process may use of its machine.
#ifndef LONGHAUL_DAEMON_HOST_RESOURCES_H_
#define LONGHAUL_DAEMON_HOST_RESOURCES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace longhaul::daemon {

struct HostResources {
  std::string host;          // the same for all daemons of one machine
  int cores = 1;             // that this process may run on: affinity and the cgroup's quota
  int64_t memory_bytes = 0;  // available now, below the cgroup's limits; 0: unknown
  std::string processor;     // as its maker calls it; empty: unknown
};

HostResources ReadHostResources();

// Memory that this process holds now, shared libraries included; 0: unknown.
int64_t OwnResidentBytes();

// Bytes that a cgroup has left, by its memory.max, memory.current and memory.stat. What is used
// counts without the part of the page cache that the kernel takes back first (inactive_file), as
// files that were read or written may fill the rest of any limit. -1: no limit, or not understood.
int64_t CgroupMemoryLeft(absl::string_view max, absl::string_view current, absl::string_view stat);
// "max" or a number, as in memory.max; -1: no limit, or not understood.
int64_t ParseCgroupLimit(absl::string_view text);
// Cores that "QUOTA PERIOD" of cpu.max allows, rounded up; 0: no limit, or not understood.
int ParseCpuMax(absl::string_view text);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_HOST_RESOURCES_H_
