// What the outbox refuses to hold.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/outbox.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Epoch kEpoch{1, 1};
constexpr Epoch kNextEpoch{1, 2};

TEST(OutboxBounds, AStageThatWasForgottenSaysNothingMore) {
  FakeControl link;
  Outbox outbox(link, 10);
  outbox.Resend();
  outbox.Begin("r", kEpoch);
  outbox.Add("r", kEpoch, Ready{"r", kEpoch});
  outbox.Forget("r", kEpoch);
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, 1});
  outbox.Begin("r", kNextEpoch);
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, 1});
  outbox.Resend();
  EXPECT_THAT(link.TakeTexts(), ElementsAre("ready of r 1.1"));
}

TEST(OutboxBounds, KeepsTheRoundestCheckpointsTheNewestAndEverythingElse) {
  FakeControl link;
  Outbox outbox(link, 10);
  outbox.Begin("r", kEpoch);
  outbox.Add("r", kEpoch, Ready{"r", kEpoch});
  constexpr int64_t kLast = 1027;
  for (int64_t step = 1; step < kLast; ++step) {
    outbox.Add("r", kEpoch, ShardStored{"r", kEpoch, 0, step, {}});
  }
  outbox.Add("r", kEpoch, ShardFailed{"r", kEpoch, 0, kLast, absl::AbortedError("newer")});
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, kLast});
  outbox.Resend();
  const std::vector<ToCoordinator> sent = link.Take();
  ASSERT_GT(sent.size(), 3u);
  EXPECT_LT(sent.size(), 60u);
  EXPECT_TRUE(std::holds_alternative<Ready>(sent.front()));
  EXPECT_EQ(std::get<ShardFailed>(sent[sent.size() - 2]).step, kLast);
  EXPECT_TRUE(std::holds_alternative<Ended>(sent.back()));
  std::vector<int64_t> steps;
  for (size_t i = 1; i + 2 < sent.size(); ++i) {
    steps.push_back(std::get<ShardStored>(sent[i]).step);
  }
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  // Whatever the pace of another stage, there is a step that it has chosen too.
  for (int64_t power = 1; power <= 128; power *= 2) {
    int64_t step = (kLast - 1) / power * power;
    for (; step > kLast - 6 * power; step -= power) EXPECT_THAT(steps, testing::Contains(step));
  }
}

TEST(OutboxBounds, TellsOfTheFirstDroppedReportAndEachThousandth) {
  FakeControl link;
  std::vector<uint64_t> told;
  Outbox outbox(link, 2, [&](uint64_t dropped) { told.push_back(dropped); });
  outbox.AddReport(TestReport(1, kEpoch));
  outbox.AddReport(TestReport(2, kEpoch));
  EXPECT_THAT(told, IsEmpty());
  for (int64_t step = 3; step < 2003; ++step) outbox.AddReport(TestReport(step, kEpoch));
  EXPECT_THAT(told, ElementsAre(1, 1000, 2000));
}

}  // namespace
}  // namespace longhaul::worker
