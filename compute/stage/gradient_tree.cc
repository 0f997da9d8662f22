#include "compute/stage/gradient_tree.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add.h"

namespace longhaul::compute {

int GradientTreeLevels(int micro_batches) {
  int levels = 0;
  while ((int64_t{1} << levels) < micro_batches) ++levels;
  return levels;
}

template <typename T>
absl::StatusOr<std::unique_ptr<GradientTree<T>>> GradientTree<T>::Create(Stage<T>& stage,
                                                                         int micro_batches) {
  LH_CHECK(micro_batches >= 1, micro_batches, " micro-batches");
  std::unique_ptr<GradientTree> tree(new GradientTree(stage, micro_batches));
  int64_t elements = 0;
  for (const StageGradient<T>& gradient : stage.gradients()) {
    tree->offsets_.push_back(elements);
    elements += static_cast<int64_t>(gradient.values.size());
  }
  for (int level = 0; level < GradientTreeLevels(micro_batches); ++level) {
    absl::StatusOr<DeviceArray<T>> array = DeviceArray<T>::Allocate(stage.backend(), elements);
    if (!array.ok()) return Annotate(array.status(), "memory for the sums of exact replicas");
    tree->levels_.push_back(*std::move(array));
  }
  return tree;
}

template <typename T>
absl::Span<T> GradientTree<T>::LevelPart(size_t level, size_t gradient) const {
  const auto elements = static_cast<int64_t>(stage_.gradients()[gradient].values.size());
  return levels_[level].Part(offsets_[gradient], elements);
}

template <typename T>
absl::Status GradientTree<T>::AddLevel(size_t level) {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const absl::Span<T> values = stage_.gradients()[i].values;
    LH_RETURN_IF_ERROR(Add<T>(stage_.backend(), LevelPart(level, i), values, values));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GradientTree<T>::StoreAs(size_t level) {
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const absl::Span<const T> values = stage_.gradients()[i].values;
    LH_RETURN_IF_ERROR(stage_.backend().Copy(LevelPart(level, i).data(), values.data(),
                                             values.size() * sizeof(T)));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GradientTree<T>::BeginMicroBatch() {
  LH_CHECK(done_ < micro_batches_, "a step has ", micro_batches_, " micro-batches");
  return stage_.ZeroGradients();
}

template <typename T>
absl::Status GradientTree<T>::EndMicroBatch() {
  const int before = done_++;  // its bits: the levels that hold a sum
  const bool last = done_ == micro_batches_;
  for (size_t level = 0; level < levels_.size(); ++level) {
    const bool occupied = (before >> level & 1) != 0;
    if (occupied) {
      LH_RETURN_IF_ERROR(AddLevel(level));
    } else if (!last) {
      return StoreAs(level);
    }
  }
  LH_CHECK(last, "after micro-batch ", before, " no level is free");
  done_ = 0;
  return absl::OkStatus();
}

template class GradientTree<float>;

}  // namespace longhaul::compute
