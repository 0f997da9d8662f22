// Threads that run the tasks of one call after another.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_THREAD_POOL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace longhaul::compute {

// Owns threads - 1 threads; the caller of Run is the last. Operators follow one another within
// microseconds, so a thread looks out for the next call for some tens of them before it sleeps; the
// destructor joins them. One thread at a time may call Run; a task must not.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs task(0) ... task(tasks - 1), each once, on any thread and in any order; returns when all
  // are done. The waits in here have no deadline: only our own computation can be late.
  void Run(int64_t tasks, absl::FunctionRef<void(int64_t)> task);

 private:
  struct Job {
    absl::FunctionRef<void(int64_t)> task;
    int64_t tasks;
  };

  void WorkerLoop();
  // Claims and runs tasks until none is left.
  void RunTasks(const Job& job);

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable workers_left_;
  const Job* job_ = nullptr;  // guarded by mutex_; null: nothing to join
  int workers_asleep_ = 0;    // guarded by mutex_
  // Written under mutex_, read without it by those who look out.
  std::atomic<uint64_t> generation_{0};  // counts jobs
  std::atomic<int> workers_in_job_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> next_task_{0};
  std::vector<std::thread> workers_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_THREAD_POOL_H_
