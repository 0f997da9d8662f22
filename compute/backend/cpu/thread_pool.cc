#include "compute/backend/cpu/thread_pool.h"

#include <algorithm>

#include "base/check.h"

namespace longhaul::compute {
namespace {

// Some tens of microseconds: about what it takes to put a thread to sleep and wake it.
constexpr int kLooksMax = 2000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once done() holds, or soon.
template <typename Done>
void LookOut(const Done& done) {
  for (int i = 0; i < kLooksMax && !done(); ++i) Pause();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  LH_CHECK(threads >= 1, "threads ", threads);
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { WorkerLoop(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_arrived_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunTasks(const Job& job) {
  for (;;) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= job.tasks) return;
    job.task(task);
  }
}

void ThreadPool::Run(int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  if (workers_.empty() || tasks <= 1) {
    for (int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  const Job job{task, tasks};
  int64_t to_wake = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    LH_CHECK(job_ == nullptr, "a task may not start tasks");
    job_ = &job;
    next_task_.store(0, std::memory_order_relaxed);
    ++generation_;
    to_wake = std::min<int64_t>(tasks - 1, workers_asleep_);
  }
  for (int64_t i = 0; i < to_wake; ++i) work_arrived_.notify_one();
  RunTasks(job);
  {
    // A worker that wakes only now finds no job; those inside finish the tasks they have claimed.
    std::lock_guard<std::mutex> lock(mutex_);
    job_ = nullptr;
  }
  LookOut([this] { return workers_in_job_ == 0; });
  std::unique_lock<std::mutex> lock(mutex_);
  workers_left_.wait(lock, [this] { return workers_in_job_ == 0; });
}

void ThreadPool::WorkerLoop() {
  uint64_t seen = 0;
  for (;;) {
    LookOut([&] { return stopping_ || generation_ != seen; });
    std::unique_lock<std::mutex> lock(mutex_);
    ++workers_asleep_;
    work_arrived_.wait(lock, [&] { return stopping_ || (job_ != nullptr && generation_ != seen); });
    --workers_asleep_;
    if (stopping_) return;
    seen = generation_;
    const Job& job = *job_;
    ++workers_in_job_;
    lock.unlock();
    RunTasks(job);
    lock.lock();
    if (--workers_in_job_ == 0) workers_left_.notify_one();
  }
}

}  // namespace longhaul::compute
