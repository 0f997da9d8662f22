// A set of sequence numbers that fills up from 0.
#ifndef LONGHAUL_WORKER_COMM_SEQUENCE_SET_H_
#define LONGHAUL_WORKER_COMM_SEQUENCE_SET_H_

#include <cstdint>
#include <set>

namespace longhaul::worker {

// Takes memory only for numbers beyond the first one missing. Not thread-safe.
class SequenceSet {
 public:
  void Add(uint64_t sequence) {
    if (sequence < before_) return;
    ahead_.insert(sequence);
    while (!ahead_.empty() && *ahead_.begin() == before_) {
      ahead_.erase(ahead_.begin());
      ++before_;
    }
  }
  bool Contains(uint64_t sequence) const {
    return sequence < before_ || ahead_.count(sequence) > 0;
  }
  // The first number missing.
  uint64_t before() const { return before_; }
  // The members beyond it.
  const std::set<uint64_t>& ahead() const { return ahead_; }

 private:
  uint64_t before_ = 0;
  std::set<uint64_t> ahead_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_SEQUENCE_SET_H_
