// For tests: a clock that tells who waits on it, so that what ends a wait can come after its begin.
#ifndef LONGHAUL_BASE_TESTING_WATCHED_CLOCK_H_
#define LONGHAUL_BASE_TESTING_WATCHED_CLOCK_H_

#include <condition_variable>
#include <map>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul {

// Another clock, which must outlive it, and the waits that are under way. Thread-safe.
class WatchedClock : public Clock {
 public:
  explicit WatchedClock(Clock& clock) : clock_(clock) {}

  absl::Time Now() const override { return clock_.Now(); }
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 absl::Time deadline, absl::FunctionRef<bool()> condition) override {
    Count(deadline, 1);
    const bool holds = clock_.WaitUntil(lock, changed, deadline, condition);
    Count(deadline, -1);
    return holds;
  }

  // Returns once `count` waits have a finite deadline of `earliest` or later: false if that does
  // not come to be. Who then takes a waiter's mutex finds it waiting.
  bool AwaitWaits(int count, absl::Time earliest) {
    std::unique_lock<std::mutex> lock(mutex_);
    return RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Seconds(60), [&] {
      int found = 0;
      for (const auto& [deadline, waits] : waits_) {
        if (deadline >= earliest && deadline != absl::InfiniteFuture()) found += waits;
      }
      return found >= count;
    });
  }

 private:
  void Count(absl::Time deadline, int change) {
    std::lock_guard<std::mutex> lock(mutex_);
    waits_[deadline] += change;
    if (waits_[deadline] == 0) waits_.erase(deadline);
    changed_.notify_all();
  }

  Clock& clock_;
  std::mutex mutex_;  // acquired after a waiter's mutex, never before
  std::condition_variable changed_;
  std::map<absl::Time, int> waits_;  // guarded by mutex_; by deadline
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_TESTING_WATCHED_CLOCK_H_
