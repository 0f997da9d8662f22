#include "worker/host/divergence.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status_macros.h"

namespace longhaul::worker {

void DivergenceWatch::BeforeStep() { stage_.LookForNotFinite(skipped_ > 0 ? &found_ : nullptr); }

absl::StatusOr<std::optional<Divergence>> DivergenceWatch::AfterStep(const StepResult& result) {
  stage_.LookForNotFinite(nullptr);
  applied_ = applied_ || result.applied;
  const bool has_targets = result.tokens > 0;
  if (result.applied) {
    skipped_ = 0;
    found_ = {};
  } else if (has_targets) {
    if (++skipped_ == 1) first_skip_ = result.step;
    LH_ASSIGN_OR_RETURN(std::optional<Divergence> parameter, FindBadParameter(result.step));
    if (parameter.has_value()) return parameter;
  }
  const bool none_applied = result.step == steps_ && start_step_ == 0 && !applied_;
  if (none_applied && skipped_ == 0) {
    return Divergence{0, absl::StrCat("all ", steps_,
                                      " steps were skipped: no token of their batches is a "
                                      "target")};
  }
  if (skipped_ < kSkippedStepsMax && !none_applied) return std::optional<Divergence>();
  return Describe(result.step);
}

absl::StatusOr<std::optional<Divergence>> DivergenceWatch::FindBadParameter(int64_t step) {
  const auto parameters = stage_.parameters();
  std::vector<double> sums(parameters.size());
  LH_RETURN_IF_ERROR(stage_.WeightSumsOfSquares(absl::MakeSpan(sums)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (std::isfinite(sums[i])) continue;
    const int index = parameters[i].index;
    const auto count = static_cast<int64_t>(graph_.parameters.size());
    return Divergence{index - count,
                      absl::StrCat("the gradient of step ", step, " is not finite, and parameter '",
                                   graph_.parameters[index].name, "' is not either")};
  }
  return std::optional<Divergence>();
}

Divergence DivergenceWatch::Describe(int64_t step) const {
  const auto ops = static_cast<int64_t>(graph_.ops.size());
  Divergence divergence;
  divergence.text = skipped_ == 1 ? absl::StrCat("the gradient of step ", step, " is not finite")
                                  : absl::StrCat("the gradients of ", skipped_, " steps in a row, ",
                                                 first_skip_, " to ", step, ", are not finite");
  if (found_.forward >= 0) {
    divergence.order = found_.forward;
    absl::StrAppend(&divergence.text, "; first the output of operator '",
                    graph_.ops[found_.forward].name, "'");
  } else if (found_.backward >= 0) {
    divergence.order = 2 * ops - found_.backward;
    absl::StrAppend(&divergence.text, "; first the gradient of operator '",
                    graph_.ops[found_.backward].name, "'");
  } else {
    divergence.order = 2 * ops + 1;
  }
  return divergence;
}

}  // namespace longhaul::worker
