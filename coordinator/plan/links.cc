#include "coordinator/plan/links.h"

#include <algorithm>
#include <cmath>

namespace longhaul::coordinator {
namespace {

bool IsMeasured(double value) { return std::isfinite(value) && value > 0; }

// The worse of two values of which either may be missing (0).
double LowerMeasured(double a, double b) {
  if (!IsMeasured(a)) return IsMeasured(b) ? b : 0;
  return IsMeasured(b) ? std::min(a, b) : a;
}
double HigherMeasured(double a, double b) {
  return std::max(IsMeasured(a) ? a : 0, IsMeasured(b) ? b : 0);
}

double CardRate(const NodeProfile& node) {
  return node.device_kind == DeviceKind::kCuda ? node.bytes_per_second : 0;
}

}  // namespace

Links::Links(absl::Span<const LinkProfile> profiles) {
  for (const LinkProfile& profile : profiles) {
    LinkProfile& known = measured_[{profile.from_site, profile.to_site}];
    known.latency_seconds = HigherMeasured(known.latency_seconds, profile.latency_seconds);
    known.bytes_per_second = LowerMeasured(known.bytes_per_second, profile.bytes_per_second);
  }
}

Link Links::Between(const NodeProfile& from, const NodeProfile& to) const {
  const bool same_host = !from.host.empty() && from.host == to.host;
  const bool same_site = from.site == to.site;
  Link link = same_host ? kHostLink : same_site ? kLanLink : kWanLink;
  link.crosses_sites = !same_site;
  link.from_card_bytes_per_second = CardRate(from);
  link.to_card_bytes_per_second = CardRate(to);
  auto found = measured_.find({from.site, to.site});
  if (found == measured_.end()) found = measured_.find({to.site, from.site});
  if (found == measured_.end()) return link;
  if (found->second.latency_seconds > 0) link.latency_seconds = found->second.latency_seconds;
  if (found->second.bytes_per_second > 0) link.bytes_per_second = found->second.bytes_per_second;
  return link;
}

}  // namespace longhaul::coordinator
