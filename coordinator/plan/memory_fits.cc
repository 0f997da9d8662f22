#include "coordinator/plan/memory_fits.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"

namespace longhaul::coordinator {
namespace {

// The largest length from 0 to `most` that fits; 0 always does.
int LongestThat(int most, absl::FunctionRef<bool(int length)> fits) {
  int low = 0, high = most;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

MemoryFits::MemoryFits(const Units& units, MemoryModel& memory, std::vector<StageRoom> stages)
    : units_(units), memory_(memory), stages_(std::move(stages)) {
  if (!units_.alike()) return;
  for (const StageRoom& room : stages_) longest_.push_back(LongestOf(room));
}

bool MemoryFits::MayFit() const {
  if (longest_.size() < 2) return true;
  int most = 0;
  for (size_t stage = 0; stage < longest_.size(); ++stage) {
    const Longest& longest = longest_[stage];
    const int length = stage == 0                     ? longest.from_first
                       : stage + 1 == longest_.size() ? longest.to_last
                                                      : longest.inner;
    if (length == 0) return false;
    most = std::min(most + length, units_.count());
  }
  return most >= units_.count();
}

bool MemoryFits::operator()(int stage, int begin, int end) const {
  const bool first = begin == 0, last = end == units_.count();
  if (longest_.empty() || (first && last)) return Computed(stages_[stage], begin, end);
  const Longest& longest = longest_[stage];
  return end - begin <= (first ? longest.from_first : last ? longest.to_last : longest.inner);
}

bool MemoryFits::Computed(const StageRoom& room, int begin, int end) const {
  return memory_.Of(begin, end, room.slots).total() <= room.memory_bytes;
}

MemoryFits::Longest MemoryFits::LongestOf(const StageRoom& room) const {
  const int count = units_.count();
  if (count < 2) return {};
  Longest longest;
  longest.from_first =
      LongestThat(count - 1, [&](int length) { return Computed(room, 0, length); });
  longest.inner = LongestThat(count - 2, [&](int length) { return Computed(room, 1, 1 + length); });
  longest.to_last =
      LongestThat(count - 1, [&](int length) { return Computed(room, count - length, count); });
  return longest;
}

}  // namespace longhaul::coordinator
