// Signals and the service manager.
#ifndef LONGHAUL_DAEMON_LIFECYCLE_H_
#define LONGHAUL_DAEMON_LIFECYCLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longhaul::daemon {

enum class SignalEvent {
  kNone,       // the time is over
  kTerminate,  // SIGTERM or SIGINT: leave in order; once more: leave at once
  kReload,     // SIGHUP
};

// Turns SIGTERM, SIGINT and SIGHUP into events: the handler only writes the signal's number into a
// pipe. (Masking them for a signalfd would not do: libraries start threads before main, and those
// would take the signals.) SIGPIPE is ignored. At most one object at a time; one thread at a time
// may wait.
class Signals {
 public:
  static absl::StatusOr<Signals> Catch();
  ~Signals();  // the signals' defaults are back
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;

  // The next signal, or kNone after `duration_max` (in milliseconds, rounded up).
  SignalEvent Wait(absl::Duration duration_max);

 private:
  explicit Signals(int read_end) : read_end_(read_end) {}
  int read_end_ = -1;
};

// What is told to systemd (sd_notify(3)); does nothing where no service manager asked for it.
class ServiceManager {
 public:
  void Ready(const std::string& status) const;
  void Reloading() const;  // Ready follows
  void Stopping(const std::string& status) const;
  void Status(const std::string& status) const;
  void Watchdog() const;
  // How often Watchdog must be called (half of what the unit says); infinite: never.
  absl::Duration WatchdogEvery() const;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_LIFECYCLE_H_
