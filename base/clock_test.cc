#include "base/clock.h"

#include <thread>

#include "base/bounded_queue.h"
#include "gtest/gtest.h"

namespace longhaul {
namespace {

TEST(FakeClock, DeadlinePassesOnlyWhenAdvanced) {
  FakeClock clock;
  BoundedQueue<int> queue(1, clock);
  const absl::Time deadline = clock.Now() + absl::Minutes(1);  // before the other thread moves it
  std::thread other([&] { clock.Advance(absl::Hours(1)); });
  EXPECT_FALSE(queue.Pop(deadline).has_value());
  other.join();
}

TEST(BoundedQueue, RefusesWhenFullAndDrainsWhenClosed) {
  FakeClock clock;
  BoundedQueue<int> queue(2, clock);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));
  queue.Close();
  EXPECT_FALSE(queue.TryPush(4));
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture()), 1);
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture()), 2);
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture()), std::nullopt);
}

TEST(RealClock, DoesNotGoBack) {
  const absl::Time a = RealClock().Now();
  EXPECT_GE(RealClock().Now(), a);
}

}  // namespace
}  // namespace longhaul
