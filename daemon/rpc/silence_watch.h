// A bound on how long a transfer of any length may stand still.
#ifndef LONGHAUL_DAEMON_RPC_SILENCE_WATCH_H_
#define LONGHAUL_DAEMON_RPC_SILENCE_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::daemon {

// Calls `cancel`, once, when `silence_max` has passed since the last Moved(), on a thread of its
// own, which ends with this. What it cancels and the clock must outlive it.
class SilenceWatch {
 public:
  SilenceWatch(std::function<void()> cancel, absl::Duration silence_max, Clock& clock);
  ~SilenceWatch();
  SilenceWatch(const SilenceWatch&) = delete;
  SilenceWatch& operator=(const SilenceWatch&) = delete;

  // Bytes have come or gone. Thread-safe.
  void Moved();
  // Whether it was this that cancelled the call. Thread-safe.
  bool cancelled() const;

 private:
  void Run();

  const std::function<void()> cancel_;
  const absl::Duration silence_max_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::Time moved_;        // guarded by mutex_
  bool ending_ = false;     // guarded by mutex_
  bool cancelled_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_SILENCE_WATCH_H_
