#include "daemon/rpc/session_table.h"

#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(SessionTable, KeepsOrderAndSwallowsWhatNobodyReads) {
  FakeClock clock;
  SessionTable table(clock, 4);
  const auto queue = table.Open(7);
  table.Send(7, coordinator::StartMessage{"a", {}});
  table.Send(7, coordinator::StopMessage{"b", {}});
  table.Send(8, coordinator::StopMessage{"c", {}});
  EXPECT_EQ(std::get<coordinator::StartMessage>(*queue->Pop(clock.Now())).run, "a");
  EXPECT_EQ(std::get<coordinator::StopMessage>(*queue->Pop(clock.Now())).run, "b");
  EXPECT_FALSE(queue->Pop(clock.Now()).has_value());
  table.Close(7);
  EXPECT_TRUE(queue->closed());
  table.Send(7, coordinator::StopMessage{"d", {}});
  EXPECT_EQ(table.overflows(), 0u);
}

TEST(SessionTable, AFullQueueEndsItsSession) {
  FakeClock clock;
  SessionTable table(clock, 2);
  const auto queue = table.Open(1);
  for (int i = 0; i < 5; ++i) table.Send(1, coordinator::StopMessage{"a", {}});
  EXPECT_TRUE(queue->closed());
  EXPECT_EQ(table.overflows(), 1u);
}

}  // namespace
}  // namespace longhaul::daemon
