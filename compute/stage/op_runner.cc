#include "compute/stage/op_runner.h"

#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "compute/stage/fused_call.h"
#include "compute/stage/not_finite.h"

namespace longhaul::compute {

constexpr int64_t kAbsent = model::BufferPlan::kAbsent;

template <typename T>
absl::StatusOr<int> OpRunner<T>::Forward(const OpCall<T>& call, const OpCall<T>* next,
                                         NotFinite* found) const {
  const Fusion fusion = plan_.forward[call.position];
  if (next != nullptr && found == nullptr && MayRunTogether(fusion, call, *next)) {
    LH_RETURN_IF_ERROR(ForwardTogether(backend_, fusion, call, *next));
    return 2;
  }
  LH_RETURN_IF_ERROR(ForwardOp(backend_, call));
  if (found != nullptr) LH_RETURN_IF_ERROR(NoteForward(backend_, call, *found));
  return 1;
}

template <typename T>
absl::StatusOr<int> OpRunner<T>::Backward(const OpCall<T>& call, const OpCall<T>* before,
                                          NotFinite* found) const {
  if (before != nullptr && found == nullptr) {
    const Fusion fusion = plan_.backward[before->position];
    if (MayRunTogether(fusion, call, *before)) {
      LH_RETURN_IF_ERROR(BackwardTogether(backend_, fusion, call, *before));
      LH_RETURN_IF_ERROR(CollectContributions(before->position));
      return 2;
    }
  }
  if (found == nullptr) {
    LH_ASSIGN_OR_RETURN(const bool done, BackwardOntoSum(call));
    if (done) return 1;
  }
  LH_RETURN_IF_ERROR(BackwardOp(backend_, call));
  if (found != nullptr) LH_RETURN_IF_ERROR(NoteBackward(backend_, call, *found));
  LH_RETURN_IF_ERROR(CollectContributions(call.position));
  return 1;
}

template <typename T>
absl::StatusOr<bool> OpRunner<T>::BackwardOntoSum(const OpCall<T>& call) const {
  const auto& contributions = arrays_.plan().contributions[call.position];
  if (contributions.size() != 1 || contributions[0].previous == kAbsent) return false;
  const int edge = call.op->inputs[0];
  const absl::Span<T> so_far = arrays_.Scratch(contributions[0].previous, edge);
  const absl::Span<T> result = arrays_.Scratch(contributions[0].result, edge);
  if (!MayRunOnto<T>(call, so_far, result)) return false;
  LH_RETURN_IF_ERROR(BackwardOnto<T>(backend_, call, so_far, result));
  return true;
}

template <typename T>
absl::Status OpRunner<T>::CollectContributions(int position) const {
  const auto& contributions = arrays_.plan().contributions[position];
  for (size_t i = 0; i < contributions.size(); ++i) {
    const model::GradientContribution& part = contributions[i];
    if (part.previous == kAbsent) continue;
    const int edge = graph_.ops[position].inputs[i];
    LH_RETURN_IF_ERROR(Add<T>(backend_, arrays_.Scratch(part.previous, edge),
                              arrays_.Scratch(part.source, edge),
                              arrays_.Scratch(part.result, edge)));
  }
  return absl::OkStatus();
}

template class OpRunner<float>;
template class OpRunner<double>;
template class OpRunner<BFloat16>;

}  // namespace longhaul::compute
