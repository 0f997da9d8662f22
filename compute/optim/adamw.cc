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

}  // namespace

template <typename T>
absl::Status AdamW(Backend& backend, const AdamWStep& step, absl::Span<const T> gradient,
                   absl::Span<T> weights, absl::Span<T> first_moment, absl::Span<T> second_moment) {
  constexpr absl::string_view kOp = "adamw";
  LH_RETURN_IF_ERROR(CheckStep(kOp, step));
  const int64_t n = static_cast<int64_t>(weights.size());
  LH_RETURN_IF_ERROR(CheckElements(kOp, "gradient", gradient.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "first_moment", first_moment.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "second_moment", second_moment.size(), {n}));
  return KernelsOf<T>(backend).AdamW(step, gradient, weights, first_moment, second_moment);
}

#define LONGHAUL_INSTANTIATE(T)                                                                  \
  template absl::Status AdamW<T>(Backend&, const AdamWStep&, absl::Span<const T>, absl::Span<T>, \
                                 absl::Span<T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
