#include "daemon/rpc/session_table.h"

#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(SessionTable, KeepsOrderAndSwallowsWhatNobodyReads) {
  FakeClock clock;
  SessionTable table(clock, 4);
  const auto queue = table.Open(7);
  table.Send(7, control::Start{"a", {}});
  table.Send(7, control::Stop{"b", {}});
  table.Send(8, control::Stop{"c", {}});
  EXPECT_EQ(std::get<control::Start>(*queue->Pop(clock.Now())).run, "a");
  EXPECT_EQ(std::get<control::Stop>(*queue->Pop(clock.Now())).run, "b");
  EXPECT_FALSE(queue->Pop(clock.Now()).has_value());
  table.Close(7);
  EXPECT_TRUE(queue->closed());
  table.Send(7, control::Stop{"d", {}});
  EXPECT_EQ(table.overflows(), 0u);
}

TEST(SessionTable, AFullQueueEndsItsSession) {
  FakeClock clock;
  SessionTable table(clock, 2);
  const auto queue = table.Open(1);
  for (int i = 0; i < 5; ++i) table.Send(1, control::Stop{"a", {}});
  EXPECT_TRUE(queue->closed());
  EXPECT_EQ(table.overflows(), 1u);
}

}  // namespace
}  // namespace longhaul::daemon
