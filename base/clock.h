// Time as an argument: everything outside main() takes a Clock, so tests move time by hand.
#ifndef LONGHAUL_BASE_CLOCK_H_
#define LONGHAUL_BASE_CLOCK_H_

#include <condition_variable>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace longhaul {

// Locking throughout Longhaul is std::mutex and std::condition_variable, not absl::Mutex: the
// distribution's Abseil is not instrumented, so ThreadSanitizer sees only the former.

// Thread-safe. Now() never goes backwards: it is for deadlines and durations.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Waits on `changed`, with `lock` held on entry and return, until `condition` holds or `deadline`
  // (of this clock) has passed. Returns whether the condition holds.
  virtual bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                         absl::Time deadline, absl::FunctionRef<bool()> condition) = 0;
};

// The machine's monotonic clock, offset once at start to the calendar.
Clock& RealClock();

// Stands still until advanced.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}
  absl::Time Now() const override;
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 absl::Time deadline, absl::FunctionRef<bool()> condition) override;

  // Wakes every waiter.
  void Advance(absl::Duration duration);

 private:
  mutable std::mutex mutex_;  // acquired after a waiter's mutex, never before
  absl::Time now_;
  std::vector<std::condition_variable*> waiters_;
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_CLOCK_H_
