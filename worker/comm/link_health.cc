#include "worker/comm/link_health.h"

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "worker/comm/link_context.h"

namespace longhaul::worker {

LinkHealth::LinkHealth(int connections, Clock& clock)
    : clock_(clock), connections_(connections, State{false, clock.Now(), absl::OkStatus()}) {}

void LinkHealth::Connected(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  connections_[connection] = {true, clock_.Now(), absl::OkStatus()};
}

void LinkHealth::Broken(int connection, const absl::Status& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  State& state = connections_[connection];
  if (state.up) state.since = clock_.Now();
  state.up = false;
  state.error = OwnCopy(error);
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
  if (shown->up) return absl::StrCat("connected since ", since);
  std::string text = connections_.size() == 1
                         ? ""
                         : absl::StrCat(up, " of ", connections_.size(), " connections up, ");
  if (shown->error.ok()) return absl::StrCat(text, "not connected since ", since);
  return absl::StrCat(text, "reconnecting since ", since, ": ",
                      shown->error.ToString(absl::StatusToStringMode::kWithNoExtraData));
}

}  // namespace longhaul::worker
