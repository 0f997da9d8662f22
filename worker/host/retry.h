// Transfers that outlast a coordinator's short absence.
#ifndef LONGHAUL_WORKER_HOST_RETRY_H_
#define LONGHAUL_WORKER_HOST_RETRY_H_

#include <algorithm>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::worker {

// For how long a transfer is tried, and how the pauses between two attempts are spent.
struct Patience {
  const Clock* clock = nullptr;
  absl::Time deadline;
  // Returns after the duration, or at once with the reason why there is no use in trying again.
  std::function<absl::Status(absl::Duration)> pause;
};

inline constexpr absl::Duration kRetryMin = absl::Milliseconds(500);
inline constexpr absl::Duration kRetryMax = absl::Seconds(10);

// Calls `attempt`, which returns a StatusOr, until it says something else than Unavailable or the
// next attempt would begin after the deadline. The pauses double from kRetryMin to kRetryMax.
template <typename Attempt>
auto WhileUnavailable(const Patience& patience, Attempt attempt) -> decltype(attempt()) {
  absl::Duration pause = kRetryMin;
  while (true) {
    auto result = attempt();
    if (!absl::IsUnavailable(result.status())) return result;
    if (patience.clock->Now() + pause >= patience.deadline) return result;
    if (absl::Status ended = patience.pause(pause); !ended.ok()) return ended;
    pause = std::min(2 * pause, kRetryMax);
  }
}

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_RETRY_H_
