// Pauses between attempts that fail.
#ifndef LONGHAUL_BASE_BACKOFF_H_
#define LONGHAUL_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace longhaul {

// The longest pause is `min` doubled `doublings` times, at most `max`; half of it is fixed and half
// drawn: `draw` is uniform over its type, and another for each who must not come back in step.
absl::Duration BackoffPause(absl::Duration min, absl::Duration max, int doublings, uint32_t draw);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_BACKOFF_H_
