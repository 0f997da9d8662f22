#include "daemon/lifecycle.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(Signals, ArriveAsEvents) {
  auto signals = Signals::Catch();
  ASSERT_TRUE(signals.ok()) << signals.status();
  EXPECT_EQ(signals->Wait(absl::ZeroDuration()), SignalEvent::kNone);
  for (const auto& [number, event] :
       {std::pair{SIGTERM, SignalEvent::kTerminate}, std::pair{SIGINT, SignalEvent::kTerminate},
        std::pair{SIGHUP, SignalEvent::kReload}}) {
    ASSERT_EQ(kill(getpid(), number), 0);
    EXPECT_EQ(signals->Wait(absl::Seconds(10)), event);
  }
  EXPECT_EQ(signals->Wait(absl::ZeroDuration()), SignalEvent::kNone);
}

// Plays the service manager: a datagram socket named by NOTIFY_SOCKET.
class NotifySocket {
 public:
  NotifySocket() : descriptor_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    const std::string path = absl::StrCat(testing::TempDir(), "/notify_", getpid());
    unlink(path.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    close(descriptor_);
  }
  std::string Receive() {
    char buffer[1024];
    const ssize_t size = recv(descriptor_, buffer, sizeof buffer, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  const int descriptor_;
};

TEST(ServiceManager, TellsReadinessReloadWatchdogAndStop) {
  NotifySocket socket;
  const ServiceManager manager;
  manager.Ready("listening on\n127.0.0.1");
  EXPECT_EQ(socket.Receive(), "READY=1\nSTATUS=listening on 127.0.0.1");
  manager.Reloading();
  EXPECT_THAT(socket.Receive(), testing::StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  manager.Watchdog();
  EXPECT_EQ(socket.Receive(), "WATCHDOG=1");
  manager.Status("idle");
  EXPECT_EQ(socket.Receive(), "STATUS=idle");
  manager.Stopping("draining");
  EXPECT_EQ(socket.Receive(), "STOPPING=1\nSTATUS=draining");
}

TEST(ServiceManager, TheWatchdogIsFedTwiceAsOftenAsAsked) {
  const ServiceManager manager;
  EXPECT_EQ(manager.WatchdogEvery(), absl::InfiniteDuration());
  setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(manager.WatchdogEvery(), absl::Seconds(15));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(manager.WatchdogEvery(), absl::InfiniteDuration());
  unsetenv("WATCHDOG_USEC");
  unsetenv("WATCHDOG_PID");
}

}  // namespace
}  // namespace longhaul::daemon
