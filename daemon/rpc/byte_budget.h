// A bound on the memory that transfers hold together.
#ifndef LONGHAUL_DAEMON_RPC_BYTE_BUDGET_H_
#define LONGHAUL_DAEMON_RPC_BYTE_BUDGET_H_

#include <cstdint>
#include <mutex>
#include <optional>

namespace longhaul::daemon {

// Thread-safe. Overflow rule: Take refuses.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Gives its bytes back when destroyed; the budget must outlive it.
  class Share {
   public:
    Share(ByteBudget& budget, uint64_t bytes) : budget_(&budget), bytes_(bytes) {}
    Share(Share&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) {
      other.bytes_ = 0;
    }
    Share& operator=(Share&&) = delete;
    ~Share() { budget_->Return(bytes_); }

   private:
    ByteBudget* budget_;
    uint64_t bytes_;
  };

  std::optional<Share> Take(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    return TakeLocked(bytes);
  }

  // As Take; but what is larger than the whole budget gets its bytes while nobody else has any.
  std::optional<Share> TakeOrAlone(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (held_ != 0) return TakeLocked(bytes);
    held_ = bytes;
    return std::optional<Share>(std::in_place, *this, bytes);
  }

 private:
  std::optional<Share> TakeLocked(uint64_t bytes) {
    if (held_ > bytes_max_ || bytes > bytes_max_ - held_) return std::nullopt;
    held_ += bytes;
    return std::optional<Share>(std::in_place, *this, bytes);
  }
  void Return(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ -= bytes;
  }

  const uint64_t bytes_max_;
  std::mutex mutex_;
  uint64_t held_ = 0;  // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_BYTE_BUDGET_H_
