#include "daemon/daemon_loop.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

// Sends this process one of `signals` each time it is asked to describe itself.
class ScriptedDaemon : public Daemon {
 public:
  ScriptedDaemon(FakeClock& clock, std::vector<int> signals)
      : clock_(clock), signals_(std::move(signals)) {}

  std::string Describe() override {
    if (next_ < signals_.size()) kill(getpid(), signals_[next_++]);
    if (leaving_) clock_.Advance(absl::Seconds(1));
    return "scripted";
  }
  bool IsTurning() override { return turning; }
  void Reload() override { ++reloads; }
  void BeginLeaving() override { leaving_ = true; }
  bool MayLeave() override { return --looks_until_free < 0; }
  absl::Status Failure() override {
    return --looks_until_failure < 0 ? absl::UnavailableError("the card is lost")
                                     : absl::OkStatus();
  }
  void BeginFailing(const absl::Status& reason) override {
    failed_with = reason;
    leaving_ = true;
  }
  absl::Duration leave_max() const override { return absl::Seconds(25); }

  bool turning = true;
  int reloads = 0;
  int looks_until_free = 1000000;
  int looks_until_failure = 1000000;
  absl::Status failed_with;

 private:
  FakeClock& clock_;
  const std::vector<int> signals_;
  size_t next_ = 0;
  bool leaving_ = false;
};

class DaemonLoopTest : public testing::Test {
 protected:
  std::string Run(ScriptedDaemon& daemon) {
    std::string logged;
    Log log(LogStyle::kPriority, LogLevel::kInfo,
            [&logged](const std::string& line) { logged += line; });
    end_ = RunDaemon(daemon, *signals_, ServiceManager(), clock_, log);
    return logged;
  }
  absl::Status end_;
  FakeClock clock_;
  absl::StatusOr<Signals> signals_ = Signals::Catch();
};

TEST_F(DaemonLoopTest, LeavesInOrderOnceTheDaemonMay) {
  ScriptedDaemon daemon(clock_, {SIGHUP, SIGTERM});
  daemon.looks_until_free = 2;
  EXPECT_THAT(Run(daemon), testing::Not(testing::HasSubstr("<4>")));
  EXPECT_EQ(daemon.reloads, 1);
  EXPECT_TRUE(end_.ok()) << end_;
}

TEST_F(DaemonLoopTest, AFailureEndsItWithTheReason) {
  ScriptedDaemon daemon(clock_, {});
  daemon.looks_until_failure = 1;
  daemon.looks_until_free = 2;
  EXPECT_THAT(Run(daemon), testing::HasSubstr("of no more use; leaving reason=\"the card is lost"));
  EXPECT_EQ(end_, absl::UnavailableError("the card is lost"));
  EXPECT_EQ(daemon.failed_with, end_);
}

TEST_F(DaemonLoopTest, AFailureHasLittleTimeToLeave) {
  ScriptedDaemon daemon(clock_, {SIGTERM});
  daemon.looks_until_failure = 3;
  const absl::Time start = clock_.Now();
  EXPECT_THAT(Run(daemon), testing::HasSubstr("could not leave in order in time"));
  EXPECT_FALSE(end_.ok());
  EXPECT_LE(clock_.Now() - start, kFailMax + absl::Seconds(5)) << "less than the 25 s of a drain";
}

TEST_F(DaemonLoopTest, ASecondSignalEndsTheWait) {
  ScriptedDaemon daemon(clock_, {SIGTERM, SIGTERM});
  EXPECT_THAT(Run(daemon), testing::HasSubstr("told to stop again"));
}

TEST_F(DaemonLoopTest, TheTimeToLeaveIsBounded) {
  ScriptedDaemon daemon(clock_, {SIGTERM});
  const std::string logged = Run(daemon);
  EXPECT_THAT(logged, testing::HasSubstr("could not leave in order in time"));
  // Says meanwhile, now and then, what it waits for and for how long.
  EXPECT_THAT(logged, testing::HasSubstr("once more to leave at once state=scripted at_most=25s"));
  EXPECT_THAT(logged, testing::HasSubstr("once more to leave at once state=scripted at_most=15s"));
  EXPECT_THAT(logged, testing::HasSubstr("once more to leave at once state=scripted at_most=5s"));
}

// How often the watchdog is fed until the daemon has left.
int CountFeedings(const std::function<void()>& run) {
  const std::string name = absl::StrCat("daemon_loop_test_", getpid());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // an abstract name: no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int receiver = socket(AF_UNIX, SOCK_DGRAM, 0);
  EXPECT_EQ(bind(receiver, reinterpret_cast<sockaddr*>(&address), size), 0);
  setenv("NOTIFY_SOCKET", absl::StrCat("@", name).c_str(), 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  run();
  unsetenv("WATCHDOG_USEC");
  unsetenv("NOTIFY_SOCKET");
  int feedings = 0;
  char buffer[1024];
  for (ssize_t got; (got = recv(receiver, buffer, sizeof buffer, MSG_DONTWAIT)) >= 0;) {
    feedings += std::string(buffer, static_cast<size_t>(got)) == "WATCHDOG=1";
  }
  close(receiver);
  return feedings;
}

TEST_F(DaemonLoopTest, TheWatchdogIsFedWhileTheDaemonsLoopTurns) {
  ScriptedDaemon turning(clock_, {SIGHUP, SIGTERM, SIGTERM});
  EXPECT_EQ(CountFeedings([&] { Run(turning); }), 3);
  ScriptedDaemon hanging(clock_, {SIGHUP, SIGTERM, SIGTERM});
  hanging.turning = false;
  EXPECT_EQ(CountFeedings([&] { Run(hanging); }), 0);
}

}  // namespace
}  // namespace longhaul::daemon
