#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "schedule/instruction_kind.h"
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

SlotMap::SlotMap(const Program& program) {
  std::vector<int> own;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind == InstructionKind::kForward) own.push_back(instruction.micro_batch);
  }
  std::sort(own.begin(), own.end());
  if (own.empty()) return;
  slots_.resize(own.back() + 1, -1);
  for (size_t position = 0; position < own.size(); ++position) {
    slots_[own[position]] = static_cast<int>(position) % program.slots;
  }
}

int SlotMap::Of(int micro_batch) const {
  LH_CHECK(micro_batch >= 0 && static_cast<size_t>(micro_batch) < slots_.size() &&
               slots_[micro_batch] >= 0,
           "micro-batch ", micro_batch, " is not of this program");
  return slots_[micro_batch];
}

}  // namespace longhaul::schedule
