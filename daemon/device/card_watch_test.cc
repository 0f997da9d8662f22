#include "daemon/device/card_watch.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// What the card answers: it is asked, and says nothing before the test does.
class Script {
 public:
  void Answer(absl::StatusOr<control::CardReadings> answer) {
    std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }
  // From now on whatever is asked is answered at once.
  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void AwaitQuestion() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }
  absl::StatusOr<control::CardReadings> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !answers_.empty() || over_; });
    asked_ = false;
    if (answers_.empty()) return control::CardReadings();
    absl::StatusOr<control::CardReadings> answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<absl::StatusOr<control::CardReadings>> answers_;
  bool asked_ = false, over_ = false;
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

void Until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

control::CardReadings Await(CardWatch& watch) {
  std::optional<control::CardReadings> readings;
  Until([&] { return (readings = watch.TakeReadings()).has_value(); });
  return *readings;
}

class CardWatchTest : public testing::Test {
 protected:
  FakeClock clock_;
  Script script_;
};

TEST_F(CardWatchTest, GivesEachReadingOnce) {
  CardWatch watch(std::make_unique<ScriptedMonitor>(script_), clock_);
  EXPECT_FALSE(watch.TakeReadings().has_value());
  script_.Answer(WithErrors(7));
  EXPECT_EQ(Await(watch), WithErrors(7));
  EXPECT_FALSE(watch.TakeReadings().has_value());
  clock_.Advance(kCardReadEvery);
  script_.Answer(WithErrors(7));
  EXPECT_EQ(Await(watch), WithErrors(7));
  EXPECT_TRUE(watch.health().ok()) << "errors from before are no reason to leave";
  script_.End();
}

TEST_F(CardWatchTest, ALostCardIsTold) {
  CardWatch watch(std::make_unique<ScriptedMonitor>(script_), clock_);
  script_.Answer(WithErrors(0));
  Await(watch);
  clock_.Advance(kCardReadEvery);
  script_.Answer(absl::UnavailableError("card GPU-1 is lost"));
  Until([&] { return !watch.health().ok(); });
  EXPECT_EQ(watch.health(), absl::UnavailableError("card GPU-1 is lost"));
}

TEST_F(CardWatchTest, SoAreErrorsThatCouldNotBeCorrected) {
  CardWatch watch(std::make_unique<ScriptedMonitor>(script_), clock_);
  for (const control::CardReadings& readings :
       {WithErrors(3), control::CardReadings(), WithErrors(5)}) {
    script_.Answer(readings);
    Await(watch);
    clock_.Advance(kCardReadEvery);
  }
  Until([&] { return !watch.health().ok(); });
  EXPECT_THAT(std::string(watch.health().message()), HasSubstr("had 2 errors"));
}

TEST_F(CardWatchTest, AndADriverThatHangs) {
  CardWatch watch(std::make_unique<ScriptedMonitor>(script_), clock_);
  script_.AwaitQuestion();
  EXPECT_TRUE(watch.health().ok());
  clock_.Advance(kCardAnswerMax);
  EXPECT_THAT(std::string(watch.health().message()), HasSubstr("has not answered for 1m"));
  script_.End();
}

}  // namespace
}  // namespace longhaul::daemon
