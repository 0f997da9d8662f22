#include "daemon/daemon_loop.h"

#include <algorithm>

namespace longhaul::daemon {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kLookEveryWhenLeaving = absl::Milliseconds(50);
constexpr absl::Duration kSayEveryWhenLeaving = absl::Seconds(10);

}  // namespace

void RunDaemon(Daemon& daemon, Signals& signals, const ServiceManager& manager, Clock& clock,
               const Log& log) {
  const absl::Duration watchdog_every = manager.WatchdogEvery();
  std::string described = daemon.Describe();
  manager.Ready(described);
  bool leaving = false;
  absl::Time leave_by = absl::InfiniteFuture();
  absl::Time say_at = absl::InfiniteFuture();
  for (;;) {
    const SignalEvent event =
        signals.Wait(std::min(leaving ? kLookEveryWhenLeaving : kLookEvery, watchdog_every));
    const std::string description = daemon.Describe();
    if (watchdog_every != absl::InfiniteDuration() && daemon.IsTurning()) manager.Watchdog();
    if (description != described) manager.Status(description);
    described = description;
    if (event == SignalEvent::kReload) {
      manager.Reloading();
      daemon.Reload();
      manager.Ready(described);
    } else if (event == SignalEvent::kTerminate && leaving) {
      log.Warning("told to stop again; leaving at once");
      return;
    } else if (event == SignalEvent::kTerminate) {
      log.Info("told to stop; leaving in order", {{"state", described}});
      manager.Stopping(described);
      leaving = true;
      leave_by = clock.Now() + daemon.leave_max();
      say_at = clock.Now();
      daemon.BeginLeaving();
    }
    if (leaving && daemon.MayLeave()) return;
    if (leaving && clock.Now() >= say_at && clock.Now() < leave_by) {
      log.Info("waiting before leaving; tell it to stop once more to leave at once",
               {{"state", described},
                {"at_most",
                 absl::FormatDuration(absl::Trunc(leave_by - clock.Now(), absl::Seconds(1)))}});
      say_at = clock.Now() + kSayEveryWhenLeaving;
    }
    if (leaving && clock.Now() >= leave_by) {
      log.Warning("could not leave in order in time; leaving now", {{"state", described}});
      return;
    }
  }
}

}  // namespace longhaul::daemon
