// What both directions of a link need to know.
#ifndef LONGHAUL_WORKER_COMM_LINK_CONTEXT_H_
#define LONGHAUL_WORKER_COMM_LINK_CONTEXT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "worker/comm/counters.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

// A frame may be this far ahead, in sequence numbers, of the oldest one that is not consumed; the
// bound of what both ends remember about frames out of order.
inline constexpr uint64_t kSequencesAheadMax = uint64_t{1} << 16;

// One for each link of an exchange; constant, and outlives the link's parts.
struct LinkContext {
  const ExchangeOptions& exchange;
  const LinkOptions& link;
  uint64_t run_hash;
  Clock& clock;
  Counters& counters;
};

// "60 s", "0.3 s".
std::string Seconds(absl::Duration duration);
// "stage 0", of the exchange itself.
std::string SelfName(const ExchangeOptions& options);
// "stage 0 (a at 10.0.0.1:7000)".
std::string PeerName(const LinkOptions& link);
// "activation of step 17 micro-batch 3"; without the micro-batch for what travels once a step.
std::string FrameName(const FrameKey& key);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_CONTEXT_H_
