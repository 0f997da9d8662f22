// The parameter that the first and the last stage share.
#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "worker/exec/interpreter.h"
#include "worker/exec/stopwatch.h"

namespace longhaul::worker {

std::vector<absl::Span<float>> StageExecutor::Interpreter::FindTiedGradients() const {
  std::vector<absl::Span<float>> found;
  if (options_.shape.stages == 1 || !(is_first() || is_last())) return found;
  const auto uses_in = [&](const model::OpRange& range, int parameter) {
    const std::vector<model::ParameterUse> uses = options_.graph->Uses(range);
    return std::count_if(uses.begin(), uses.end(), [&](const model::ParameterUse& use) {
      return use.parameter == parameter;
    });
  };
  for (const int parameter : options_.graph->TiedParameters()) {
    const auto in_first = uses_in(options_.ranges.front(), parameter);
    const auto in_last = uses_in(options_.ranges.back(), parameter);
    if (in_first == 0 || in_last == 0) continue;
    // With more uses at the end the sum would run in another order than on one stage.
    LH_CHECK(in_last == 1, "parameter ", options_.graph->parameters[parameter].name, " has ",
             in_last, " uses in the last stage");
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
    LH_RETURN_IF_ERROR(Send(instruction, tied_gradients_[i], static_cast<uint32_t>(i)));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvTiedGradient(const Instruction& instruction) {
  LH_RETURN_IF_ERROR(SumUses());
  for (size_t i = 0; i < tied_gradients_.size(); ++i) {
    const absl::Span<float> own = tied_gradients_[i];
    const absl::Span<float> head = absl::MakeSpan(tied_received_).first(own.size());
    LH_RETURN_IF_ERROR(Receive(instruction, head, static_cast<uint32_t>(i)));
    const Stopwatch compute(*clock_, pass_.timings.compute);
    LH_RETURN_IF_ERROR(compute::Add<float>(stage_->backend(), own, head, own));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvTiedSum(const Instruction& instruction) {
  for (size_t i = 0; i < tied_gradients_.size(); ++i) {
    LH_RETURN_IF_ERROR(Receive(instruction, tied_gradients_[i], static_cast<uint32_t>(i)));
  }
  return absl::OkStatus();
}

}  // namespace longhaul::worker
