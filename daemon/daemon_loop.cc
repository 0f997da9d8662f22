#include "daemon/daemon_loop.h"

#include <algorithm>

namespace longhaul::daemon {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kLookEveryWhenLeaving = absl::Milliseconds(50);
constexpr absl::Duration kSayEveryWhenLeaving = absl::Seconds(10);

// Why and until when the daemon leaves.
class Leave {
 public:
  Leave(Daemon& daemon, Clock& clock, const Log& log) : daemon_(daemon), clock_(clock), log_(log) {}

  bool begun() const { return begun_; }
  const absl::Status& failure() const { return failure_; }

  void Begin() {
    begun_ = true;
    leave_by_ = clock_.Now() + daemon_.leave_max();
    say_at_ = clock_.Now();
    daemon_.BeginLeaving();
  }

  // Also where it leaves already: it has less time then.
  void LookForFailure() {
    if (!failure_.ok()) return;
    failure_ = daemon_.Failure();
    if (failure_.ok()) return;
    log_.Error("of no more use; leaving", {{"reason", std::string(failure_.message())}});
    begun_ = true;
    leave_by_ = std::min(leave_by_, clock_.Now() + kFailMax);
    daemon_.BeginFailing(failure_);
  }

  // Whether the daemon should end.
  bool IsOver(const std::string& described) {
    if (!begun_) return false;
    if (daemon_.MayLeave()) return true;
    const absl::Time now = clock_.Now();
    if (now >= leave_by_) {
      log_.Warning("could not leave in order in time; leaving now", {{"state", described}});
      return true;
    }
    if (now >= say_at_) {
      log_.Info(
          "waiting before leaving; tell it to stop once more to leave at once",
          {{"state", described},
           {"at_most", absl::FormatDuration(absl::Trunc(leave_by_ - now, absl::Seconds(1)))}});
      say_at_ = now + kSayEveryWhenLeaving;
    }
    return false;
  }

 private:
  Daemon& daemon_;
  Clock& clock_;
  const Log& log_;
  bool begun_ = false;
  absl::Time leave_by_ = absl::InfiniteFuture();
  absl::Time say_at_ = absl::InfiniteFuture();
  absl::Status failure_;
};

}  // namespace

absl::Status RunDaemon(Daemon& daemon, Signals& signals, const ServiceManager& manager,
                       Clock& clock, const Log& log) {
  const absl::Duration watchdog_every = manager.WatchdogEvery();
  std::string described = daemon.Describe();
  manager.Ready(described);
  Leave leave(daemon, clock, log);
  for (;;) {
    const SignalEvent event =
        signals.Wait(std::min(leave.begun() ? kLookEveryWhenLeaving : kLookEvery, watchdog_every));
    const std::string description = daemon.Describe();
    if (watchdog_every != absl::InfiniteDuration() && daemon.IsTurning()) manager.Watchdog();
    if (description != described) manager.Status(description);
    described = description;
    if (event == SignalEvent::kReload) {
      manager.Reloading();
      daemon.Reload();
      manager.Ready(described);
    } else if (event == SignalEvent::kTerminate && leave.begun()) {
      log.Warning("told to stop again; leaving at once");
      return leave.failure();
    } else if (event == SignalEvent::kTerminate) {
      log.Info("told to stop; leaving in order", {{"state", described}});
      manager.Stopping(described);
      leave.Begin();
    }
    // In this order, so that what BeginFailing says has a moment to go out.
    if (leave.IsOver(described)) return leave.failure();
    leave.LookForFailure();
  }
}

}  // namespace longhaul::daemon
