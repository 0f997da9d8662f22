#include "daemon/lifecycle.h"

#include <fcntl.h>
#include <poll.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/file.h"

namespace longhaul::daemon {
namespace {

constexpr std::array<int, 3> kCaught = {SIGTERM, SIGINT, SIGHUP};

// A handler has no argument that could carry it.
std::atomic<int> write_end{-1};

extern "C" void OnSignal(int number) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe holds signals enough.
  [[maybe_unused]] const ssize_t written = write(write_end.load(), &byte, 1);
  errno = error;
}

// A status is one line of the protocol.
std::string OneLine(const std::string& status) {
  return absl::StrReplaceAll(status, {{"\n", " "}});
}

}  // namespace

absl::StatusOr<Signals> Signals::Catch() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus(errno, "open", "signal pipe");
  LH_CHECK(write_end.exchange(ends[1]) == -1, "signals are caught already");
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (const int number : kCaught) sigaction(number, &action, nullptr);
  return Signals(ends[0]);
}

Signals::~Signals() {
  if (read_end_ < 0) return;
  for (const int number : kCaught) std::signal(number, SIG_DFL);
  close(read_end_);
  close(write_end.exchange(-1));
}

Signals::Signals(Signals&& other) noexcept : read_end_(std::exchange(other.read_end_, -1)) {}

SignalEvent Signals::Wait(absl::Duration duration_max) {
  const absl::Duration bounded = std::min(duration_max, absl::Hours(1));
  pollfd event = {read_end_, POLLIN, 0};
  const int timeout_milliseconds =
      static_cast<int>(absl::ToInt64Milliseconds(bounded + absl::Microseconds(999)));
  if (poll(&event, 1, timeout_milliseconds) <= 0) return SignalEvent::kNone;
  unsigned char number = 0;
  if (read(read_end_, &number, 1) != 1) return SignalEvent::kNone;
  return number == SIGHUP ? SignalEvent::kReload : SignalEvent::kTerminate;
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
