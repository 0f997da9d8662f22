#include "base/clock.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

namespace longhaul {
namespace {

class MonotonicClock : public Clock {
 public:
  absl::Time Now() const override {
    return origin_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_origin_);
  }
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 absl::Time deadline, absl::FunctionRef<bool()> condition) override {
    // wait_until overflows on far deadlines; a day is as good as for ever, looked at again.
    constexpr absl::Duration kWaitMax = absl::Hours(24);
    while (!condition()) {
      const absl::Duration left = deadline - Now();
      if (left <= absl::ZeroDuration()) return false;
      changed.wait_until(lock, std::chrono::steady_clock::now() +
                                   absl::ToChronoNanoseconds(std::min(left, kWaitMax)));
    }
    return true;
  }

 private:
  const std::chrono::steady_clock::time_point steady_origin_ = std::chrono::steady_clock::now();
  const absl::Time origin_ = absl::Now();
};

}  // namespace

Clock& RealClock() {
  static MonotonicClock* const clock = new MonotonicClock;
  return *clock;
}

absl::Time FakeClock::Now() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

bool FakeClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                          absl::Time deadline, absl::FunctionRef<bool()> condition) {
  // Advance wakes waiters without their mutexes, so a wake-up can fall between the look at the time
  // and the wait: look again now and then. What is decided depends on condition and fake time only.
  constexpr std::chrono::milliseconds kLookAgain(5);
  {
    std::lock_guard<std::mutex> own(mutex_);
    waiters_.push_back(&changed);
  }
  bool holds = condition();
  while (!holds && Now() < deadline) {
    changed.wait_for(lock, kLookAgain);
    holds = condition();
  }
  std::lock_guard<std::mutex> own(mutex_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &changed));
  return holds;
}

void FakeClock::Advance(absl::Duration duration) {
  // While mutex_ is held no waiter can leave, so that what is notified exists.
  std::lock_guard<std::mutex> own(mutex_);
  now_ += duration;
  for (std::condition_variable* waiter : waiters_) waiter->notify_all();
}

}  // namespace longhaul
