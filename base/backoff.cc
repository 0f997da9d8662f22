#include "base/backoff.h"

#include <algorithm>

namespace longhaul {

absl::Duration BackoffPause(absl::Duration min, absl::Duration max, int doublings, uint32_t draw) {
  constexpr int kDoublingsMax = 20;
  const int64_t factor = int64_t{1} << std::clamp(doublings, 0, kDoublingsMax);
  return std::min(max, min * factor) * (0.5 + 0.5 * (draw / 4294967296.0));
}

}  // namespace longhaul
