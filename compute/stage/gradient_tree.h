// Gradients summed over a fixed binary tree of micro-batches, so that a split of the micro-batches
// into aligned parts, each summed alone, gives the bits of the whole.
#ifndef LONGHAUL_COMPUTE_STAGE_GRADIENT_TREE_H_
#define LONGHAUL_COMPUTE_STAGE_GRADIENT_TREE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "compute/stage/device_array.h"
#include "compute/stage/stage.h"

namespace longhaul::compute {

// Sums like a binary counter: the gradient of each micro-batch is made in a fresh accumulator, and
// two sums of equally many micro-batches become one, older + newer; what is left in the end is
// added from the smallest to the largest, older + newer. For 8 micro-batches that is
// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).
//
// A step is: for each of its micro-batches BeginMicroBatch, Stage::Backward, EndMicroBatch; then
// the stage's accumulators hold the sum. Nothing is allocated after Create. One thread at a time.
template <typename T>
class GradientTree {
 public:
  // For steps of `micro_batches`, at least 1. The stage must outlive it. ResourceExhausted if the
  // sums on the way do not fit.
  static absl::StatusOr<std::unique_ptr<GradientTree>> Create(Stage<T>& stage, int micro_batches);

  // Clears the stage's accumulators.
  absl::Status BeginMicroBatch();
  absl::Status EndMicroBatch();

 private:
  GradientTree(Stage<T>& stage, int micro_batches) : stage_(stage), micro_batches_(micro_batches) {}
  // accumulators = level + accumulators
  absl::Status AddLevel(size_t level);
  absl::Status StoreAs(size_t level);
  absl::Span<T> LevelPart(size_t level, size_t gradient) const;

  Stage<T>& stage_;
  const int micro_batches_;
  int done_ = 0;                        // of the step's micro-batches
  std::vector<DeviceArray<T>> levels_;  // level l: the sum of 2^l micro-batches
  std::vector<int64_t> offsets_;        // of each of the stage's gradients in a level
};

// Sums on the way that a step of so many micro-batches needs; each is as large as the gradients.
int GradientTreeLevels(int micro_batches);

extern template class GradientTree<float>;

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_GRADIENT_TREE_H_
