// What the network between two nodes can do, measured or assumed.
#ifndef LONGHAUL_COORDINATOR_PLAN_LINKS_H_
#define LONGHAUL_COORDINATOR_PLAN_LINKS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "coordinator/plan/planner.h"

namespace longhaul::coordinator {

// One direction between two nodes.
struct Link {
  double latency_seconds = 0;   // one way
  double bytes_per_second = 0;  // above 0
  bool crosses_sites = false;
  // Memory rates of the cards at its ends, which encode and decode there; 0: a processor does.
  double from_card_bytes_per_second = 0;
  double to_card_bytes_per_second = 0;
};

// Assumed where nothing was measured: within one host, within one site, and between sites.
inline constexpr Link kHostLink = {50e-6, 2e9, false};
inline constexpr Link kLanLink = {200e-6, 1.25e9, false};
inline constexpr Link kWanLink = {20e-3, 125e6, true};

// By pair of sites. Immutable once made.
class Links {
 public:
  // Of two profiles of one direction the worse numbers count, whatever their order; latencies and
  // rates that are no positive finite numbers count as not measured.
  explicit Links(absl::Span<const LinkProfile> profiles);

  // Measured in this direction, else measured the other way, else assumed.
  Link Between(const NodeProfile& from, const NodeProfile& to) const;

 private:
  std::map<std::pair<std::string, std::string>, LinkProfile> measured_;  // by sites, from and to
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_LINKS_H_
