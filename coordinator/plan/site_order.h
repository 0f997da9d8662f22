// In which order a pipeline visits its sites.
#ifndef LONGHAUL_COORDINATOR_PLAN_SITE_ORDER_H_
#define LONGHAUL_COORDINATOR_PLAN_SITE_ORDER_H_

#include <vector>

namespace longhaul::coordinator {

// The way from one site's last stage to the next site's first stage, and back.
struct SiteLeg {
  double round_trip_seconds = 0;        // of one micro-batch: activation there, gradient back
  double slowest_transfer_seconds = 0;  // of the two: the link is busy so long
  double tied_seconds = 0;              // exchange of tied parameters, once a step
};

// Sites are numbered from 0.
struct SiteOrderProblem {
  std::vector<int> stages;                 // by site: at least 1
  std::vector<std::vector<SiteLeg>> legs;  // [from][to]
  std::vector<int> slots;                  // by stage of the whole pipeline
  double stage_seconds = 0;                // of one micro-batch, of a typical stage, both ways
  double micro_batches = 1;
};

// To first order, the seconds of a step that visits the sites in `order`: filling and draining,
// then one micro-batch in each period. The period is the longest of a stage, a transfer, and the
// round trip from a stage to the end of the pipeline shared by the micro-batches that the stage's
// slots keep in flight.
double EstimateStep(const SiteOrderProblem& problem, const std::vector<int>& order);

// Sites up to which every order is tried.
inline constexpr int kExhaustiveSitesMax = 7;

// The order with the least estimate, the first of equals. Beyond kExhaustiveSitesMax sites: the
// nearest neighbour from every start, improved by reversing parts while that helps (2-opt, Croes
// 1958), the best first; beyond dozens of sites from some starts only, and improved only so far.
std::vector<int> BestSiteOrder(const SiteOrderProblem& problem);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_SITE_ORDER_H_
