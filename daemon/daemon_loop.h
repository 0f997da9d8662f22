// The main thread of a daemon that runs: signals, the service manager, leaving in order.
#ifndef LONGHAUL_DAEMON_DAEMON_LOOP_H_
#define LONGHAUL_DAEMON_DAEMON_LOOP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "daemon/lifecycle.h"
#include "daemon/log.h"

namespace longhaul::daemon {

// One daemon as its loop sees it. Called from the loop's thread only.
class Daemon {
 public:
  virtual ~Daemon() = default;

  // One line for people. Goes through the daemon's own locks, so that a daemon that hangs on one
  // stops feeding the watchdog.
  virtual std::string Describe() = 0;

  // Whether a loop of the daemon that Describe does not go through turns; the watchdog is not fed
  // while it does not.
  virtual bool IsTurning() { return true; }

  // SIGHUP: takes up what can be taken up, and says in the log what cannot.
  virtual void Reload() = 0;

  // The first SIGTERM. From then on the daemon is asked whether it may leave, for as long as
  // leave_max says.
  virtual void BeginLeaving() = 0;
  virtual bool MayLeave() = 0;
  virtual absl::Duration leave_max() const = 0;

  // OK, or why the daemon is of no more use and must end.
  virtual absl::Status Failure() { return absl::OkStatus(); }
  // The first Failure that is not OK: says so to whom it concerns. From then on the daemon is asked
  // whether it may leave, for kFailMax.
  virtual void BeginFailing(const absl::Status& reason) {}
};

inline constexpr absl::Duration kFailMax = absl::Seconds(10);

// Returns when the daemon should end: it may leave, its time for that is over, or SIGTERM came
// again. An error is the daemon's Failure.
absl::Status RunDaemon(Daemon& daemon, Signals& signals, const ServiceManager& manager,
                       Clock& clock, const Log& log);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_DAEMON_LOOP_H_
