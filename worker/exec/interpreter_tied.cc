// The parameter that the first and the last stage share.
#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "model/stage_parameters.h"
#include "worker/exec/interpreter.h"

namespace longhaul::worker {

std::vector<absl::Span<float>> StageExecutor::Interpreter::FindTiedGradients() const {
  std::vector<absl::Span<float>> found;
  if (!(is_first() || is_last())) return found;
  for (const int parameter : model::ParametersTiedAcross(*options_.graph, options_.ranges)) {
    for (const compute::StageGradient<float>& gradient : stage_->gradients()) {
      if (gradient.use.parameter != parameter) continue;
      found.push_back(gradient.values);
      break;
    }
  }
  return found;
}

absl::Status StageExecutor::Interpreter::SendTied(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(SumUses());
  for (size_t i = 0; i < tied_gradients_.size(); ++i) {
    const compute::DeviceSpan values(tied_gradients_[i]);
    LH_RETURN_IF_ERROR(Send(instruction, values, static_cast<uint32_t>(i)));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvTiedGradient(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(SumUses());
  for (size_t i = 0; i < tied_gradients_.size(); ++i) {
    const absl::Span<float> own = tied_gradients_[i];
    const absl::Span<float> head = tied_received_.Part(0, static_cast<int64_t>(own.size()));
    LH_RETURN_IF_ERROR(Receive(instruction, compute::DeviceSpan(head), static_cast<uint32_t>(i)));
    LH_RETURN_IF_ERROR(
        Compute([&] { return compute::Add<float>(stage_->backend(), own, head, own); }));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvTiedSum(const Instruction& instruction) {
  for (size_t i = 0; i < tied_gradients_.size(); ++i) {
    const compute::DeviceSpan values(tied_gradients_[i]);
    LH_RETURN_IF_ERROR(Receive(instruction, values, static_cast<uint32_t>(i)));
  }
  return absl::OkStatus();
}

}  // namespace longhaul::worker
