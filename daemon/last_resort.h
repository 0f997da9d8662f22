// The end of a process whose orderly end may never come: a call into a driver that hangs cannot be
// ended from outside.
#ifndef LONGHAUL_DAEMON_LAST_RESORT_H_
#define LONGHAUL_DAEMON_LAST_RESORT_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "daemon/log.h"

namespace longhaul::daemon {

// Ends the process with `exit_code` after `duration_max`, without a destructor run, unless it is
// destroyed before. `clock` and `log` must outlive it.
class LastResort {
 public:
  LastResort(int exit_code, absl::Duration duration_max, Clock& clock, const Log& log);
  ~LastResort();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool not_needed_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_LAST_RESORT_H_
