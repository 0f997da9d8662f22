// Measures what the planner needs to know of this node.
#ifndef LONGHAUL_DAEMON_NODE_PROBE_H_
#define LONGHAUL_DAEMON_NODE_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/backend.h"

namespace longhaul::daemon {

struct NodeMeasures {
  std::string numeric_class;
  double flops_per_second = 0;           // of a fp32 matrix product with the given threads
  double bfloat16_flops_per_second = 0;  // 0: the device does not compute in it
  double bytes_per_second = 0;           // read and written by a copy with the given threads
};

// Bytes that each thread copies to measure the memory: well beyond a core's caches, as far as all
// threads together then hold at most 512 MiB and an eighth of `memory_bytes` (0: not known).
size_t CopyBytesEach(int threads, int64_t memory_bytes);

// `memory_bytes`: what there is for it, as in CopyBytesEach. Takes about half a second. The daemons
// of one host measure one after the other, as far as that can be had within a few seconds.
absl::StatusOr<NodeMeasures> MeasureNode(int threads, int64_t memory_bytes, Clock& clock);

// The same of a card; the rates are those of one product of large matrices and of one large copy,
// with at most an eighth of `memory_bytes`. Takes about half a second.
absl::StatusOr<NodeMeasures> MeasureCard(compute::Backend& backend, int64_t memory_bytes,
                                         Clock& clock);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_NODE_PROBE_H_
