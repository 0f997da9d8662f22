#include "coordinator/plan/link_costs.h"

#include "coordinator/plan/codecs.h"

namespace longhaul::coordinator {

LinkPair PairBetween(const Links& links, const NodeProfile& from, const NodeProfile& to) {
  return {links.Between(from, to), links.Between(to, from)};
}

void AddFrames(const LinkPair& link, const compression::Codec& codec, double elements,
               schedule::TimelineCosts& costs) {
  const FrameSeconds activation = FrameSecondsOf(codec, elements, link.there);
  const FrameSeconds gradient = FrameSecondsOf(codec, elements, link.back);
  costs.activation_latency.push_back(link.there.latency_seconds);
  costs.activation_transfer.push_back(activation.transfer);
  costs.activation_encode.push_back(activation.encode);
  costs.activation_decode.push_back(activation.decode);
  costs.gradient_latency.push_back(link.back.latency_seconds);
  costs.gradient_transfer.push_back(gradient.transfer);
  costs.gradient_encode.push_back(gradient.encode);
  costs.gradient_decode.push_back(gradient.decode);
}

void AddTiedTraffic(const LinkPair& link, double tied_bytes, schedule::TimelineCosts& costs) {
  if (tied_bytes == 0) return;
  costs.tied_gradient_latency = link.back.latency_seconds;
  costs.tied_gradient_transfer = tied_bytes / link.back.bytes_per_second;
  costs.tied_sum_latency = link.there.latency_seconds;
  costs.tied_sum_transfer = tied_bytes / link.there.bytes_per_second;
}

}  // namespace longhaul::coordinator
