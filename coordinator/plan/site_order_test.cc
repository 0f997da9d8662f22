#include "coordinator/plan/site_order.h"

#include <cmath>
#include <numeric>

#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

// One stage a site, sites at `places` on a line, a second of round trip for each unit of distance.
SiteOrderProblem SitesOnALine(const std::vector<double>& places) {
  SiteOrderProblem problem;
  const int sites = static_cast<int>(places.size());
  problem.stages.assign(sites, 1);
  problem.slots.assign(sites, 1000);
  problem.stage_seconds = 0.001;
  problem.micro_batches = 4;
  for (const double from : places) {
    std::vector<SiteLeg>& legs = problem.legs.emplace_back();
    for (const double to : places) legs.push_back({.round_trip_seconds = std::abs(from - to)});
  }
  return problem;
}

TEST(BestSiteOrder, FollowsTheLineThroughFewSites) {
  EXPECT_EQ(BestSiteOrder(SitesOnALine({3, 1, 2, 5, 4})), (std::vector<int>{1, 2, 0, 4, 3}));
}

TEST(BestSiteOrder, FollowsTheLineThroughManySites) {
  const std::vector<double> places = {6, 1, 9, 3, 8, 2, 11, 5, 10, 4, 7};
  const std::vector<int> order = BestSiteOrder(SitesOnALine(places));
  double length = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    length += std::abs(places[order[i]] - places[order[i + 1]]);
  }
  EXPECT_EQ(length, 10);  // from end to end
}

TEST(BestSiteOrder, AvoidsTheSlowLinkWhenItWouldBeTheBottleneck) {
  // 0-1 has little latency but transfers slowly; 0-2 and 2-1 are the other way round.
  SiteOrderProblem problem = SitesOnALine({0, 0, 0});
  const SiteLeg slow = {.round_trip_seconds = 0.01, .slowest_transfer_seconds = 1};
  const SiteLeg far = {.round_trip_seconds = 0.1, .slowest_transfer_seconds = 0.01};
  problem.legs = {{{}, slow, far}, {slow, {}, far}, {far, far, {}}};
  EXPECT_EQ(BestSiteOrder(problem), (std::vector<int>{0, 2, 1}));
}

TEST(EstimateStep, OneSiteIsStagesPlusMicroBatches) {
  SiteOrderProblem problem;
  problem.stages = {4};
  problem.legs = {{{}}};
  problem.slots = {4, 3, 2, 1};
  problem.stage_seconds = 2;
  problem.micro_batches = 8;
  EXPECT_DOUBLE_EQ(EstimateStep(problem, {0}), (4 + 8 - 1) * 2);
}

TEST(EstimateStep, RoundTripsAreSharedByTheMicroBatchesInFlight) {
  // Two stages of 1 s, 10 s of round trip, two micro-batches in flight: one each 6 s.
  SiteOrderProblem problem;
  problem.stages = {1, 1};
  problem.legs = {{{}, {.round_trip_seconds = 10}}, {{.round_trip_seconds = 10}, {}}};
  problem.slots = {2, 1};
  problem.stage_seconds = 1;
  problem.micro_batches = 5;
  EXPECT_DOUBLE_EQ(EstimateStep(problem, {0, 1}), 2 + 10 + 4 * 6);
}

}  // namespace
}  // namespace longhaul::coordinator
