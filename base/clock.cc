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
  Waiter self{lock.mutex(), &changed};
  {
    std::lock_guard<std::mutex> own(mutex_);
    waiters_.push_back(&self);
  }
  while (!condition() && Now() < deadline) changed.wait(lock);
  {
    std::lock_guard<std::mutex> own(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
  }
  return condition();
}

void FakeClock::Advance(absl::Duration duration) {
  std::vector<Waiter> to_wake;
  {
    std::lock_guard<std::mutex> own(mutex_);
    now_ += duration;
    for (const Waiter* waiter : waiters_) to_wake.push_back(*waiter);
  }
  for (const Waiter& waiter : to_wake) {
    // Taking the waiter's mutex puts this wake-up after its look at the time.
    std::lock_guard<std::mutex> theirs(*waiter.mutex);
    waiter.changed->notify_all();
  }
}

}  // namespace longhaul
