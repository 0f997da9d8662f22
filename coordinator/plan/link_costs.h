// What the network between two stages adds to the timeline of a step.
#ifndef LONGHAUL_COORDINATOR_PLAN_LINK_COSTS_H_
#define LONGHAUL_COORDINATOR_PLAN_LINK_COSTS_H_

#include "compression/codec.h"
#include "coordinator/plan/links.h"
#include "schedule/timeline.h"

namespace longhaul::coordinator {

// Both directions between two nodes.
struct LinkPair {
  Link there;
  Link back;
};
LinkPair PairBetween(const Links& links, const NodeProfile& from, const NodeProfile& to);

// The next link of the pipeline, over which each micro-batch sends an activation of `elements`
// values there and a gradient of as many back.
void AddFrames(const LinkPair& link, const compression::Codec& codec, double elements,
               schedule::TimelineCosts& costs);

// Of a table that the first and the last stage share: its gradient goes from the last stage to the
// first, the sum comes back. `link` leads from the first stage to the last. Nothing for 0 bytes.
void AddTiedTraffic(const LinkPair& link, double tied_bytes, schedule::TimelineCosts& costs);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_LINK_COSTS_H_
