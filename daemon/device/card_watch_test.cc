#include "daemon/device/card_watch.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// What the card answers, one reading each; what follows the last is that the driver hangs.
class Script {
 public:
  explicit Script(std::deque<absl::StatusOr<control::CardReadings>> answers)
      : answers_(std::move(answers)) {}
  absl::StatusOr<control::CardReadings> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    hangs_ = answers_.empty();
    changed_.notify_all();
    changed_.wait(lock, [this] { return !answers_.empty() || over_; });
    if (over_) return control::CardReadings();
    auto answer = answers_.front();
    answers_.pop_front();
    return answer;
  }
  void AwaitHang() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return hangs_; });
  }
  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<absl::StatusOr<control::CardReadings>> answers_;
  bool hangs_ = false, over_ = false;
};

class ScriptedMonitor : public CardMonitor {
 public:
  explicit ScriptedMonitor(Script& script) : script_(script) {}
  std::string driver_version() const override { return ""; }
  absl::StatusOr<control::CardReadings> Read() override { return script_.Next(); }

 private:
  Script& script_;
};

control::CardReadings WithErrors(int64_t count) {
  control::CardReadings readings;
  readings.uncorrected_errors = count;
  return readings;
}

// Turns the clock on until `condition` holds.
void Until(FakeClock& clock, const std::function<bool()>& condition) {
  while (!condition()) clock.Advance(absl::Seconds(1));
}

TEST(CardWatch, GivesEachReadingOnce) {
  FakeClock clock;
  Script script({WithErrors(7), WithErrors(7)});
  CardWatch watch(std::make_unique<ScriptedMonitor>(script), clock);
  std::optional<control::CardReadings> readings;
  Until(clock, [&] { return (readings = watch.TakeReadings()).has_value(); });
  EXPECT_EQ(readings, WithErrors(7)) << "errors from before are no reason to leave";
  Until(clock, [&] { return (readings = watch.TakeReadings()).has_value(); });
  script.AwaitHang();
  EXPECT_FALSE(watch.TakeReadings().has_value());
  EXPECT_TRUE(watch.health().ok()) << watch.health();
  script.End();
}

TEST(CardWatch, ALostCardIsTold) {
  FakeClock clock;
  Script script({WithErrors(0), absl::UnavailableError("card GPU-1 is lost")});
  CardWatch watch(std::make_unique<ScriptedMonitor>(script), clock);
  Until(clock, [&] { return !watch.health().ok(); });
  EXPECT_EQ(watch.health(), absl::UnavailableError("card GPU-1 is lost"));
}

TEST(CardWatch, SoAreErrorsThatCouldNotBeCorrected) {
  FakeClock clock;
  Script script({WithErrors(3), control::CardReadings(), WithErrors(5)});
  CardWatch watch(std::make_unique<ScriptedMonitor>(script), clock);
  Until(clock, [&] { return !watch.health().ok(); });
  EXPECT_THAT(std::string(watch.health().message()), HasSubstr("had 2 errors"));
}

TEST(CardWatch, AndADriverThatHangs) {
  FakeClock clock;
  Script script({});
  CardWatch watch(std::make_unique<ScriptedMonitor>(script), clock);
  script.AwaitHang();
  EXPECT_TRUE(watch.health().ok());
  clock.Advance(kCardAnswerMax);
  EXPECT_THAT(std::string(watch.health().message()), HasSubstr("has not answered for 1m"));
  script.End();
}

}  // namespace
}  // namespace longhaul::daemon
