// What the outbox refuses to hold.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/outbox.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Epoch kEpoch{1, 1};
constexpr Epoch kNextEpoch{1, 2};

class RecordingLink : public ControlLink {
 public:
  bool Send(const ToCoordinator& message) override {
    sent.push_back(message);
    return true;
  }
  std::vector<ToCoordinator> sent;
};

StepReport Report(int64_t step, const Epoch& epoch) {
  StepReport report;
  report.run = "r";
  report.epoch = epoch;
  report.step = step;
  return report;
}

TEST(OutboxBounds, AStageThatWasForgottenSaysNothingMore) {
  RecordingLink link;
  Outbox outbox(link, 10);
  outbox.Resend();
  outbox.Begin("r", kEpoch);
  outbox.Add("r", kEpoch, Ready{"r", kEpoch});
  outbox.Forget("r", kEpoch);
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, 1});
  outbox.Begin("r", kNextEpoch);
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, 1});
  ASSERT_EQ(link.sent.size(), 1u);
  outbox.Resend();
  EXPECT_EQ(link.sent.size(), 1u);
}

TEST(OutboxBounds, KeepsTheNewestCheckpointsAndEverythingElse) {
  RecordingLink link;
  Outbox outbox(link, 10);
  outbox.Begin("r", kEpoch);
  outbox.Add("r", kEpoch, Ready{"r", kEpoch});
  const int64_t last = static_cast<int64_t>(Outbox::kCheckpointsKept) + 3;
  for (int64_t step = 1; step < last; ++step) {
    outbox.Add("r", kEpoch, ShardFailed{"r", kEpoch, 0, step, absl::AbortedError("newer")});
  }
  outbox.Add("r", kEpoch, ShardStored{"r", kEpoch, 0, last, {}});
  outbox.Add("r", kEpoch, Ended{"r", kEpoch, 0, last});
  outbox.Resend();
  ASSERT_EQ(link.sent.size(), Outbox::kCheckpointsKept + 2);
  EXPECT_TRUE(std::holds_alternative<Ready>(link.sent.front()));
  EXPECT_EQ(std::get<ShardFailed>(link.sent[1]).step, 4);
  EXPECT_EQ(std::get<ShardStored>(link.sent[link.sent.size() - 2]).step, last);
  EXPECT_TRUE(std::holds_alternative<Ended>(link.sent.back()));
}

TEST(OutboxBounds, AnAcknowledgementIsForOneEpochsReport) {
  RecordingLink link;
  Outbox outbox(link, 10);
  outbox.AddReport(Report(1, kEpoch));
  outbox.AddReport(Report(1, kNextEpoch));
  outbox.AcknowledgeReport("r", kEpoch, 1);
  outbox.Resend();
  ASSERT_EQ(link.sent.size(), 1u);
  EXPECT_EQ(std::get<StepReport>(link.sent[0]).epoch, kNextEpoch);
}

TEST(OutboxBounds, TellsOfTheFirstDroppedReportAndEachThousandth) {
  RecordingLink link;
  std::vector<uint64_t> told;
  Outbox outbox(link, 2, [&](uint64_t dropped) { told.push_back(dropped); });
  outbox.AddReport(Report(1, kEpoch));
  outbox.AddReport(Report(2, kEpoch));
  EXPECT_THAT(told, IsEmpty());
  for (int64_t step = 3; step < 2003; ++step) outbox.AddReport(Report(step, kEpoch));
  EXPECT_THAT(told, ElementsAre(1, 1000, 2000));
}

}  // namespace
}  // namespace longhaul::worker
