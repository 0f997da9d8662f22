#include "compute/optim/adamw.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

absl::Status CheckStep(absl::string_view op, const AdamWStep& step) {
  // Comparisons are false for NaN.
  const auto is_fraction = [](double value) { return value >= 0 && value < 1; };
  if (step.step < 1 || !is_fraction(step.beta1) || !is_fraction(step.beta2) ||
      !(step.epsilon > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        op, ": step ", step.step, ", beta1 ", step.beta1, ", beta2 ", step.beta2, ", epsilon ",
        step.epsilon, "; steps count from 1, betas lie in [0, 1), epsilon is positive"));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckTensor(absl::string_view op, const AdamWTensor<T>& tensor) {
  const int64_t n = static_cast<int64_t>(tensor.weights.size());
  LH_RETURN_IF_ERROR(CheckElements(op, "gradient", tensor.gradient.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(op, "first_moment", tensor.first_moment.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(op, "second_moment", tensor.second_moment.size(), {n}));
  if (tensor.working.empty()) return absl::OkStatus();
  return CheckElements(op, "working", tensor.working.size(), {n});
}

}  // namespace

template <typename T>
absl::Status AdamW(Backend& backend, const AdamWStep& step,
                   absl::Span<const AdamWTensor<T>> tensors) {
  constexpr absl::string_view kOp = "adamw";
  LH_RETURN_IF_ERROR(CheckStep(kOp, step));
  for (const AdamWTensor<T>& tensor : tensors) LH_RETURN_IF_ERROR(CheckTensor(kOp, tensor));
  return KernelsOf<T>(backend).AdamW(step, tensors);
}

template absl::Status AdamW<float>(Backend&, const AdamWStep&,
                                   absl::Span<const AdamWTensor<float>>);
template absl::Status AdamW<double>(Backend&, const AdamWStep&,
                                    absl::Span<const AdamWTensor<double>>);
template absl::Status AdamW<BFloat16>(Backend&, const AdamWStep&,
                                      absl::Span<const AdamWTensor<BFloat16>>);

}  // namespace longhaul::compute
