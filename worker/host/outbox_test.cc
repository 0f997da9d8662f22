#include "worker/host/outbox.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Epoch kOld{1, 1};
constexpr Epoch kNew{1, 2};

StepReport Report(int64_t step, const Epoch& epoch = kOld) { return TestReport(step, epoch); }

Ready ReadyOf(const Epoch& epoch) { return {"r", epoch}; }
Ended EndedOf(const Epoch& epoch, int64_t step) { return {"r", epoch, 0, step}; }

class OutboxTest : public testing::Test {
 protected:
  FakeControl control_;
  uint64_t dropped_ = 0;
  Outbox outbox_{control_, 3, [this](uint64_t dropped) { dropped_ = dropped; }};
};

TEST_F(OutboxTest, SendsNothingBeforeTheFirstResend) {
  outbox_.Begin("r", kOld);
  outbox_.Add("r", kOld, ReadyOf(kOld));
  outbox_.AddReport(Report(1));
  EXPECT_THAT(control_.TakeTexts(), IsEmpty());
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 1 of r 1.1", "ready of r 1.1"));
}

TEST_F(OutboxTest, SendsAtOnceAndInOrderWhileConnected) {
  outbox_.Resend();
  outbox_.Begin("r", kOld);
  outbox_.Add("r", kOld, ReadyOf(kOld));
  outbox_.AddReport(Report(1));
  outbox_.AddReport(Report(2));
  outbox_.Add("r", kOld, EndedOf(kOld, 2));
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("ready of r 1.1", "report 1 of r 1.1",
                                                "report 2 of r 1.1", "ended 2 of r 1.1"));
}

TEST_F(OutboxTest, ResendsEverythingUntilItIsSettled) {
  outbox_.Resend();
  outbox_.Begin("r", kOld);
  outbox_.AddReport(Report(1));
  outbox_.AddReport(Report(2));
  outbox_.Add("r", kOld, EndedOf(kOld, 2));
  control_.Take();
  for (int stream = 0; stream < 2; ++stream) {
    outbox_.Pause();
    outbox_.Resend();
    EXPECT_THAT(control_.TakeTexts(),
                ElementsAre("report 1 of r 1.1", "report 2 of r 1.1", "ended 2 of r 1.1"));
  }
  outbox_.AcknowledgeReport("r", kOld, 1);
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 2 of r 1.1", "ended 2 of r 1.1"));
  outbox_.Forget("r", kOld);
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 2 of r 1.1"));
}

TEST_F(OutboxTest, PauseHoldsMessagesBackUntilResend) {
  outbox_.Resend();
  outbox_.Pause();
  outbox_.AddReport(Report(1));
  EXPECT_THAT(control_.TakeTexts(), IsEmpty());
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 1 of r 1.1"));
}

TEST_F(OutboxTest, AfterARefusalNothingOvertakes) {
  outbox_.Resend();
  control_.SetRoom(1);
  outbox_.AddReport(Report(1));
  outbox_.AddReport(Report(2));  // refused
  control_.SetRoom(-1);
  outbox_.AddReport(Report(3));  // must not arrive before 2
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 1 of r 1.1"));
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(),
              ElementsAre("report 1 of r 1.1", "report 2 of r 1.1", "report 3 of r 1.1"));
}

TEST_F(OutboxTest, KeepsTheNewestReportsAndSaysSo) {
  for (int64_t step = 1; step <= 5; ++step) outbox_.AddReport(Report(step));
  EXPECT_EQ(dropped_, 1u);  // it is told of the first
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(),
              ElementsAre("report 3 of r 1.1", "report 4 of r 1.1", "report 5 of r 1.1"));
  outbox_.AcknowledgeReport("r", kOld, 4);
  outbox_.AddReport(Report(6));
  control_.Take();
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 5 of r 1.1", "report 6 of r 1.1"));
}

TEST_F(OutboxTest, AnAcknowledgementCoversEarlierStepsOfItsEpochAlone) {
  outbox_.AddReport(Report(7));
  outbox_.AddReport(Report(5, kNew));
  outbox_.AddReport(Report(6, kNew));
  outbox_.AcknowledgeReport("another", kNew, 9);
  outbox_.AcknowledgeReport("r", kNew, 6);
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 7 of r 1.1"));
}

TEST_F(OutboxTest, WithoutRoomForReportsTheyAreSentOnce) {
  Outbox none(control_, 0, [this](uint64_t dropped) { dropped_ = dropped; });
  none.Resend();
  none.AddReport(Report(1));
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("report 1 of r 1.1"));
  EXPECT_EQ(dropped_, 1u);
  none.Resend();
  EXPECT_THAT(control_.TakeTexts(), IsEmpty());
}

TEST_F(OutboxTest, ForgettingAnOlderEpochLeavesTheNewer) {
  outbox_.Begin("r", kNew);
  outbox_.Add("r", kNew, ReadyOf(kNew));
  outbox_.Forget("r", kOld);
  outbox_.Forget("another", kNew);
  outbox_.Resend();
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("ready of r 1.2"));
}

}  // namespace
}  // namespace longhaul::worker
