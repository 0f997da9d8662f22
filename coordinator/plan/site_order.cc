#include "coordinator/plan/site_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace longhaul::coordinator {
namespace {

// An order must be better by this part to replace an earlier one, so that rounding never decides.
constexpr double kBetter = 1 - 1e-9;

// Visits of sites while orders are made, and while they are improved: enough to end by itself for
// a dozen sites, a few milliseconds for any number.
constexpr int kStartingWorkMax = 200'000;
constexpr int64_t kImprovingWorkMax = 100'000;

std::vector<int> BestOfAll(const SiteOrderProblem& problem) {
  std::vector<int> order(problem.stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> best = order;
  double best_seconds = EstimateStep(problem, best);
  while (std::next_permutation(order.begin(), order.end())) {
    const double seconds = EstimateStep(problem, order);
    if (seconds >= best_seconds * kBetter) continue;
    best_seconds = seconds;
    best = order;
  }
  return best;
}

std::vector<int> NearestNeighbours(const SiteOrderProblem& problem, int start) {
  const int sites = static_cast<int>(problem.stages.size());
  std::vector<bool> visited(sites, false);
  std::vector<int> order = {start};
  visited[start] = true;
  while (static_cast<int>(order.size()) < sites) {
    const std::vector<SiteLeg>& legs = problem.legs[order.back()];
    int nearest = -1;
    for (int site = 0; site < sites; ++site) {
      if (visited[site]) continue;
      if (nearest < 0 || legs[site].round_trip_seconds < legs[nearest].round_trip_seconds) {
        nearest = site;
      }
    }
    visited[nearest] = true;
    order.push_back(nearest);
  }
  return order;
}

// An order and its estimate.
struct Estimated {
  double seconds = 0;
  std::vector<int> order;
};

// Reverses parts of the order while that makes it better and `work`, in visits of sites, lasts.
void Improve(const SiteOrderProblem& problem, Estimated& best, int64_t& work) {
  std::vector<int>& order = best.order;
  for (bool improved = true; improved;) {
    improved = false;
    for (size_t begin = 0; begin + 1 < order.size(); ++begin) {
      for (size_t end = begin + 2; end <= order.size(); ++end) {
        work -= static_cast<int64_t>(order.size());
        if (work < 0) return;
        std::reverse(order.begin() + begin, order.begin() + end);
        const double seconds = EstimateStep(problem, order);
        if (seconds < best.seconds * kBetter) {
          best.seconds = seconds;
          improved = true;
        } else {
          std::reverse(order.begin() + begin, order.begin() + end);
        }
      }
    }
  }
}

}  // namespace

double EstimateStep(const SiteOrderProblem& problem, const std::vector<int>& order) {
  const int stages = static_cast<int>(problem.slots.size());
  double period = problem.stage_seconds;
  double round_trips = 0;  // of the legs from the site to the last one
  int after = 0;           // stages of the sites behind the leg
  for (size_t site = order.size() - 1; site > 0; --site) {
    const SiteLeg& leg = problem.legs[order[site - 1]][order[site]];
    after += problem.stages[order[site]];
    round_trips += leg.round_trip_seconds;
    const double in_flight =
        std::min<double>(problem.slots[stages - after - 1], problem.micro_batches);
    const double round_trip = (after + 1) * problem.stage_seconds + round_trips;
    period = std::max({period, leg.slowest_transfer_seconds, round_trip / in_flight});
  }
  return stages * problem.stage_seconds + round_trips + (problem.micro_batches - 1) * period +
         problem.legs[order.back()][order.front()].tied_seconds;
}

std::vector<int> BestSiteOrder(const SiteOrderProblem& problem) {
  const int sites = static_cast<int>(problem.stages.size());
  if (sites <= kExhaustiveSitesMax) return BestOfAll(problem);
  const int starts = std::clamp(kStartingWorkMax / (sites * sites), 1, sites);
  std::vector<Estimated> found;
  for (int i = 0; i < starts; ++i) {
    const int start = static_cast<int>(int64_t{i} * sites / starts);
    std::vector<int> order = NearestNeighbours(problem, start);
    const double seconds = EstimateStep(problem, order);
    found.push_back({seconds, std::move(order)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Estimated& a, const Estimated& b) { return a.seconds < b.seconds; });
  int64_t work = kImprovingWorkMax;
  for (Estimated& one : found) Improve(problem, one, work);
  const Estimated* best = &found.front();
  for (const Estimated& one : found) {
    if (one.seconds < best->seconds * kBetter) best = &one;
  }
  return best->order;
}

}  // namespace longhaul::coordinator
