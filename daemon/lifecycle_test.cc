#include "daemon/lifecycle.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/testing/test_folder.h"
#include "daemon/test_notify_socket.h"
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

TEST(ServiceManager, TellsReadinessReloadWatchdogAndStop) {
  const TestFolder folder("notify");
  NotifySocket socket(folder.path() + "/socket");
  setenv("NOTIFY_SOCKET", socket.path().c_str(), 1);
  const ServiceManager manager;
  manager.Ready("listening on\n127.0.0.1");
  EXPECT_EQ(socket.WaitFor(""), "READY=1\nSTATUS=listening on 127.0.0.1");
  manager.Reloading();
  EXPECT_THAT(socket.WaitFor(""), testing::StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  manager.Watchdog();
  EXPECT_EQ(socket.WaitFor(""), "WATCHDOG=1");
  manager.Status("idle");
  EXPECT_EQ(socket.WaitFor(""), "STATUS=idle");
  manager.Stopping("draining");
  EXPECT_EQ(socket.WaitFor(""), "STOPPING=1\nSTATUS=draining");
  unsetenv("NOTIFY_SOCKET");
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
