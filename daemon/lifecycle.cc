#include "daemon/lifecycle.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"

namespace longhaul::daemon {
namespace {

// A status is one line of the protocol.
std::string OneLine(const std::string& status) {
  return absl::StrReplaceAll(status, {{"\n", " "}});
}

}  // namespace

absl::StatusOr<Signals> Signals::Block() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    return ErrnoStatus(error, "block", "signals");
  }
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return ErrnoStatus(errno, "open", "signalfd");
  return Signals(descriptor);
}

Signals::~Signals() {
  if (descriptor_ >= 0) close(descriptor_);
}

Signals::Signals(Signals&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

SignalEvent Signals::Wait(absl::Duration duration_max) {
  const absl::Duration bounded = std::min(duration_max, absl::Hours(1));
  pollfd event = {descriptor_, POLLIN, 0};
  const int timeout_milliseconds =
      static_cast<int>(absl::ToInt64Milliseconds(bounded + absl::Microseconds(999)));
  if (poll(&event, 1, timeout_milliseconds) <= 0) return SignalEvent::kNone;
  signalfd_siginfo info;
  if (read(descriptor_, &info, sizeof info) != sizeof info) return SignalEvent::kNone;
  return info.ssi_signo == SIGHUP ? SignalEvent::kReload : SignalEvent::kTerminate;
}

void ServiceManager::Ready(const std::string& status) const {
  sd_notify(0, absl::StrCat("READY=1\nSTATUS=", OneLine(status)).c_str());
}

void ServiceManager::Reloading() const {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = now.tv_sec * int64_t{1000000} + now.tv_nsec / 1000;
  sd_notify(0, absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", microseconds).c_str());
}

void ServiceManager::Stopping(const std::string& status) const {
  sd_notify(0, absl::StrCat("STOPPING=1\nSTATUS=", OneLine(status)).c_str());
}

void ServiceManager::Status(const std::string& status) const {
  sd_notify(0, absl::StrCat("STATUS=", OneLine(status)).c_str());
}

void ServiceManager::Watchdog() const { sd_notify(0, "WATCHDOG=1"); }

absl::Duration ServiceManager::WatchdogEvery() const {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return absl::InfiniteDuration();
  return absl::Microseconds(microseconds) / 2;
}

}  // namespace longhaul::daemon
