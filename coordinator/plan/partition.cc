#include "coordinator/plan/partition.h"

#include <algorithm>
#include <limits>

namespace longhaul::coordinator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;

using Table = std::vector<std::vector<double>>;

// The slowest stage of the best partition of all units into all stages.
double SlowestStage(const PartitionProblem& problem) {
  const int units = problem.units;
  // By number of units: the slowest of the stages so far, which hold the first so many units.
  std::vector<double> before(units + 1, kInfinity);
  before[0] = 0;
  for (int stage = 0; stage < problem.stages; ++stage) {
    std::vector<double> after(units + 1, kInfinity);
    for (int end = stage + 1; end <= units - (problem.stages - 1 - stage); ++end) {
      for (int begin = end - 1; begin >= stage; --begin) {
        const double seconds = problem.seconds(stage, begin, end);
        if (seconds >= after[end]) break;
        if (!(before[begin] < after[end]) || !problem.fits(stage, begin, end)) continue;
        after[end] = std::max(seconds, before[begin]);
      }
    }
    before = std::move(after);
  }
  return before[units];
}

// result[s][u]: the fewest cut bytes of units [u, end) in stages [s, end), none slower than
// `limit`.
Table FewestCutBytes(const PartitionProblem& problem, double limit) {
  const int units = problem.units;
  Table fewest(problem.stages, std::vector<double>(units, kInfinity));
  for (int stage = problem.stages - 1; stage >= 0; --stage) {
    const bool last = stage == problem.stages - 1;
    for (int begin = stage; begin < units; ++begin) {
      for (int end = begin + 1; end <= units; ++end) {
        if (problem.seconds(stage, begin, end) > limit) break;
        if (last != (end == units) || !problem.fits(stage, begin, end)) continue;
        const double bytes = last ? 0 : problem.cut_bytes(end) + fewest[stage + 1][end];
        fewest[stage][begin] = std::min(fewest[stage][begin], bytes);
      }
    }
  }
  return fewest;
}

}  // namespace

std::optional<std::vector<int>> MinimizeSlowestStage(const PartitionProblem& problem) {
  if (problem.stages < 1 || problem.units < problem.stages) return std::nullopt;
  const double slowest = SlowestStage(problem);
  if (slowest == kInfinity) return std::nullopt;
  const double limit = slowest * (1 + kRounding);
  const Table fewest = FewestCutBytes(problem, limit);

  std::vector<int> bounds = {0};
  for (int stage = 0; stage + 1 < problem.stages; ++stage) {
    const int begin = bounds.back();
    int end = begin + 1;
    while (!problem.fits(stage, begin, end) ||
           problem.cut_bytes(end) + fewest[stage + 1][end] != fewest[stage][begin]) {
      ++end;
    }
    bounds.push_back(end);
  }
  bounds.push_back(problem.units);
  return bounds;
}

}  // namespace longhaul::coordinator
