#include "worker/host/exchange_totals.h"

#include <gtest/gtest.h>

#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

TEST(ExchangeTotals, SumsOverExchangesThatLiveAndThatEnded) {
  ExchangeTotals totals;
  TwoStages stages;
  stages.Start();
  totals.Add(&stages.stage(0));
  totals.Add(&stages.stage(1));
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Send(FrameKind::kGradient, 0, 0).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kGradient, 0, 0).ok());
  EXPECT_EQ(totals.Sum().frames_sent, 2u);
  EXPECT_EQ(totals.Sum().frames_received, 2u);
  totals.Remove(&stages.stage(0));
  ASSERT_TRUE(stages.Send(FrameKind::kGradient, 1, 0).ok());
  EXPECT_EQ(totals.Sum().frames_sent, 3u);
  totals.Remove(&stages.stage(1));
  EXPECT_EQ(totals.Sum().frames_sent, 3u);
}

}  // namespace
}  // namespace longhaul::worker
