// Where to cut a chain of units into stages.
#ifndef LONGHAUL_COORDINATOR_PLAN_PARTITION_H_
#define LONGHAUL_COORDINATOR_PLAN_PARTITION_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"

namespace longhaul::coordinator {

// The stages are in pipeline order, each with its own costs: nodes differ. All functions must be
// pure; ranges are of units, [begin, end), never empty.
struct PartitionProblem {
  int units = 0;
  int stages = 0;
  // What stage `stage` takes for the units: at least 0, finite, not less for a larger range.
  absl::FunctionRef<double(int stage, int begin, int end)> seconds;
  // Whether the stage can hold them at all.
  absl::FunctionRef<bool(int stage, int begin, int end)> fits;
  // Bytes over the cut in front of `unit`.
  absl::FunctionRef<double(int unit)> cut_bytes;
};

// The contiguous partition that minimises, in this order, the slowest stage, the bytes over all
// cuts, and the positions of the cuts from the first on (the leftmost). Stage s gets units
// [result[s], result[s + 1]); every stage gets at least one. Nothing where no partition fits.
// Exact, by dynamic programming; differences of 1e-9 of the slowest stage count as equal, so that
// rounding does not decide.
std::optional<std::vector<int>> MinimizeSlowestStage(const PartitionProblem& problem);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_PARTITION_H_
