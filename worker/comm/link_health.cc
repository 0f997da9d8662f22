#include "worker/comm/link_health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "worker/comm/link_context.h"

namespace longhaul::worker {

LinkHealth::LinkHealth(int connections, absl::Duration silence_max, Clock& clock)
    : silence_max_(silence_max), clock_(clock), connections_(connections) {
  for (State& state : connections_) state.since = clock.Now();
}

void LinkHealth::Connected(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  State& state = connections_[connection];
  state.up = true;
  state.since = clock_.Now();
  state.error = absl::OkStatus();
}

void LinkHealth::Heard(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  connections_[connection].heard = clock_.Now();
}

void LinkHealth::Broken(int connection, const absl::Status& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  State& state = connections_[connection];
  if (state.up) state.since = clock_.Now();
  state.up = false;
  state.error = OwnCopy(error);
}

absl::Time LinkHealth::LastHeard() const {
  std::lock_guard<std::mutex> lock(mutex_);
  absl::Time last = absl::InfinitePast();
  for (const State& state : connections_) last = std::max(last, state.heard);
  return last;
}

bool LinkHealth::WaitWhileAlive(std::unique_lock<std::mutex>& lock,
                                std::condition_variable& changed, absl::Time deadline,
                                absl::FunctionRef<bool()> condition) const {
  const absl::Time begin = clock_.Now();
  while (true) {
    const absl::Time until = std::min(deadline, std::max(begin, LastHeard()) + silence_max_);
    // Signs of life need not wake this wait: they count when it ends.
    if (clock_.WaitUntil(lock, changed, until, condition)) return true;
    if (until == deadline || std::max(begin, LastHeard()) + silence_max_ <= until) return false;
  }
}

std::string LinkHealth::Describe() const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t up = 0;
  const State* shown = &connections_.front();
  for (const State& state : connections_) {
    up += state.up;
    if (shown->up && !state.up) shown = &state;
  }
  const std::string since = Seconds(clock_.Now() - shown->since);
  if (shown->up) {
    return absl::StrCat(
        "connected since ", since,
        shown->heard == absl::InfinitePast()
            ? ", not heard yet"
            : absl::StrCat(", heard ", Seconds(clock_.Now() - shown->heard), " ago"));
  }
  std::string text = connections_.size() == 1
                         ? ""
                         : absl::StrCat(up, " of ", connections_.size(), " connections up, ");
  if (shown->error.ok()) return absl::StrCat(text, "not connected since ", since);
  return absl::StrCat(text, "reconnecting since ", since, ": ",
                      shown->error.ToString(absl::StatusToStringMode::kWithNoExtraData));
}

}  // namespace longhaul::worker
