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

MemoryFits::MemoryFits(const Units& units, MemoryModel& memory, std::vector<StageRoom> stages,
                       run::Recompute recompute)
    : units_(units), memory_(memory), stages_(std::move(stages)), recompute_(recompute) {
  if (units_.period() == 0 || !units_.even_cuts()) return;
  for (const bool again : {false, true}) {
    if (recompute_ == (again ? run::Recompute::kNever : run::Recompute::kAlways)) continue;
    for (const StageRoom& room : stages_) longest_[again].push_back(LongestOf(room, again));
  }
}

bool MemoryFits::MayFit() const {
  const std::vector<Longest>& of_stages = longest_[recompute_ != run::Recompute::kNever];
  if (of_stages.size() < 2) return true;
  int most = 0;
  for (size_t stage = 0; stage < of_stages.size(); ++stage) {
    const Longest& longest = of_stages[stage];
    int length = *std::max_element(longest.inner.begin(), longest.inner.end());
    if (stage == 0) length = longest.from_first;
    // Units behind those that repeat may be alone on a stage.
    if (stage > 0 && units_.alike_end() + 1 < units_.count()) length = std::max(length, 1);
    if (stage + 1 == of_stages.size()) length = longest.to_last;
    if (length == 0) return false;
    most = std::min(most + length, units_.count());
  }
  return most >= units_.count();
}

Fit MemoryFits::Of(int stage, int begin, int end) const {
  if (recompute_ != run::Recompute::kAlways && Fits(stage, begin, end, false)) return Fit::kKeeping;
  if (recompute_ != run::Recompute::kNever && Fits(stage, begin, end, true)) {
    return Fit::kRecomputing;
  }
  return Fit::kNo;
}

bool MemoryFits::Fits(int stage, int begin, int end, bool recompute) const {
  const bool first = begin == 0, last = end == units_.count();
  if (longest_[recompute].empty() || (first && last) ||
      (!first && !last && end > units_.alike_end())) {
    return Computed(stages_[stage], begin, end, recompute);
  }
  const Longest& longest = longest_[recompute][stage];
  if (first) return end - begin <= longest.from_first;
  if (last) return end - begin <= longest.to_last;
  return end - begin <= longest.inner[(begin - 1) % units_.period()];
}

bool MemoryFits::Computed(const StageRoom& room, int begin, int end, bool recompute) const {
  return memory_.Of(begin, end, room.slots, recompute, room.precision).total() <= room.memory_bytes;
}

MemoryFits::Longest MemoryFits::LongestOf(const StageRoom& room, bool recompute) const {
  const int count = units_.count();
  Longest longest;
  longest.from_first =
      LongestThat(count - 1, [&](int length) { return Computed(room, 0, length, recompute); });
  for (int begin = 1; begin <= units_.period(); ++begin) {
    const int most = std::max(0, units_.alike_end() - begin);
    longest.inner.push_back(LongestThat(
        most, [&](int length) { return Computed(room, begin, begin + length, recompute); }));
  }
  longest.to_last = LongestThat(
      count - 1, [&](int length) { return Computed(room, count - length, count, recompute); });
  return longest;
}

}  // namespace longhaul::coordinator
