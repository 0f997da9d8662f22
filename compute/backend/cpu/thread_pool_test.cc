#include "compute/backend/cpu/thread_pool.h"

#include <atomic>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::Each;

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      // Plain integers: a task that ran twice at once would be a data race.
      std::vector<int> runs(static_cast<size_t>(tasks), 0);
      pool.Run(tasks, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
      EXPECT_THAT(runs, Each(1)) << threads << " threads, " << tasks << " tasks";
    }
  }
}

// A worker that wakes late for one call must not take tasks of it, nor of the next, twice.
TEST(ThreadPool, ManyShortCalls) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(3, 0);
  for (int call = 0; call < 3000; ++call) {
    pool.Run(3, [&](int64_t task) { sums[static_cast<size_t>(task)] += call; });
  }
  EXPECT_THAT(sums, Each(2999 * 3000 / 2));
}

// The caller alone cannot finish: both tasks wait for each other.
TEST(ThreadPool, TasksRunAtTheSameTime) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  pool.Run(2, [&](int64_t) {
    std::unique_lock<std::mutex> lock(mutex);
    ++arrived;
    changed.notify_all();
    changed.wait(lock, [&] { return arrived == 2; });
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, WritesOfTasksAreSeenByTheCaller) {
  ThreadPool pool(3);
  std::vector<int64_t> values(100);
  pool.Run(100, [&](int64_t task) { values[static_cast<size_t>(task)] = task; });
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 4950);
}

TEST(ThreadPool, EndsWithoutHavingRun) { ThreadPool pool(8); }

TEST(ThreadPoolDeathTest, TasksMayNotStartTasks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.Run(2, [&](int64_t) { pool.Run(2, [](int64_t) {}); });
      },
      "a task may not start tasks");
}

}  // namespace
}  // namespace longhaul::compute
