#include "daemon/daemon_loop.h"

#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

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
  void Reload() override { ++reloads; }
  void BeginLeaving() override { leaving_ = true; }
  bool MayLeave() override { return --looks_until_free < 0; }
  absl::Duration leave_max() const override { return absl::Seconds(25); }

  int reloads = 0;
  int looks_until_free = 1000000;

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
    RunDaemon(daemon, *signals_, ServiceManager(), clock_, log);
    return logged;
  }
  FakeClock clock_;
  absl::StatusOr<Signals> signals_ = Signals::Catch();
};

TEST_F(DaemonLoopTest, LeavesInOrderOnceTheDaemonMay) {
  ScriptedDaemon daemon(clock_, {SIGHUP, SIGTERM});
  daemon.looks_until_free = 2;
  EXPECT_THAT(Run(daemon), testing::Not(testing::HasSubstr("<4>")));
  EXPECT_EQ(daemon.reloads, 1);
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

}  // namespace
}  // namespace longhaul::daemon
