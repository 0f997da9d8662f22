// Measures what the planner needs to know of this node.
#ifndef LONGHAUL_DAEMON_NODE_PROBE_H_
#define LONGHAUL_DAEMON_NODE_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace longhaul::daemon {

struct NodeMeasures {
  std::string numeric_class;
  double flops_per_second = 0;  // of a fp32 matrix product with the given threads
  double bytes_per_second = 0;  // read and written by a copy with the given threads
};

// Takes about half a second. The daemons of one host measure one after the other, as far as that
// can be had within a few seconds.
absl::StatusOr<NodeMeasures> MeasureNode(int threads, Clock& clock);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_NODE_PROBE_H_
