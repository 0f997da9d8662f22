// A first-in first-out queue between threads with a stated bound.
#ifndef LONGHAUL_BASE_BOUNDED_QUEUE_H_
#define LONGHAUL_BASE_BOUNDED_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul {

// Thread-safe. Overflow rule: TryPush refuses, and the caller decides what that means.
template <typename T>
class BoundedQueue {
 public:
  BoundedQueue(size_t capacity, Clock& clock) : capacity_(capacity), clock_(clock) {}

  // False if the queue is full or closed; `value` is then untouched.
  bool TryPush(T&& value) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    changed_.notify_one();
    return true;
  }

  // The oldest item; nothing once `deadline` has passed, or when closed and empty.
  std::optional<T> Pop(absl::Time deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    clock_.WaitUntil(lock, changed_, deadline, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  // Refuses new items; what is queued can still be popped.
  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  bool closed() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }

 private:
  const size_t capacity_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_BOUNDED_QUEUE_H_
