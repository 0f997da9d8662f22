// Which checkpoints are worth keeping where they are due faster than they are stored. Stages of a
// pipeline store at different speeds and do not ask each other; a checkpoint is whole only if all
// choose it. So each prefers steps that are multiples of greater powers of two, at every place
// where something has to be given up.
#ifndef LONGHAUL_CHECKPOINT_ROUNDNESS_H_
#define LONGHAUL_CHECKPOINT_ROUNDNESS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace longhaul::checkpoint {

// Of what power of two the step, which is not negative, is a multiple.
inline int Roundness(int64_t step) { return std::countr_zero(static_cast<uint64_t>(step)); }

// Thins out steps: of every roundness and above, the newest kNewestKept stay. That is
// O(log(newest step)) steps, and for any n, all multiples of the power of two next below n among
// about the last 4 n steps. A stage that needs the time of n steps to store one shard has chosen
// such a multiple, and says that it is stored less than 2 n steps after it was due.
class RoundSteps {
 public:
  static constexpr int kNewestKept = 8;

  // To be called for each step, the newest first: whether it stays.
  bool Keep(int64_t step) {
    const auto roundness = static_cast<size_t>(Roundness(step));
    int newer = 0;
    for (size_t r = roundness; r < seen_.size(); ++r) newer += seen_[r];
    if (newer >= kNewestKept) return false;
    ++seen_[roundness];
    return true;
  }

 private:
  std::array<int, 65> seen_{};  // that stay, by roundness
};

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_ROUNDNESS_H_
