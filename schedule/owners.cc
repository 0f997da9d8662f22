#include <cstdint>
#include <numeric>
#include <vector>

#include "schedule/program.h"

namespace longhaul::schedule {

std::vector<int> SpreadOwners(absl::Span<const int> shares) {
  const int64_t all = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  std::vector<int64_t> taken(shares.size(), 0);
  std::vector<int> owners;
  for (int64_t m = 0; m < all; ++m) {
    // The middle of its next part is first: (2 taken + 1) / share, compared without division.
    int next = -1;
    for (int r = 0; r < static_cast<int>(shares.size()); ++r) {
      if (taken[r] == shares[r]) continue;
      if (next < 0 || (2 * taken[r] + 1) * shares[next] < (2 * taken[next] + 1) * shares[r]) {
        next = r;
      }
    }
    ++taken[next];
    owners.push_back(next);
  }
  return owners;
}

std::vector<int> BlockOwners(absl::Span<const int> shares) {
  std::vector<int> owners;
  for (size_t r = 0; r < shares.size(); ++r) {
    owners.insert(owners.end(), shares[r], static_cast<int>(r));
  }
  return owners;
}

}  // namespace longhaul::schedule
