#include "worker/exec/verdict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace longhaul::worker {
namespace {

constexpr double kClipEpsilon = 1e-6;

absl::Status Refuse(absl::string_view what, double value) {
  return absl::InvalidArgumentError(absl::StrCat("verdict: ", what, " is ", value));
}

}  // namespace

Verdict DecideVerdict(double sum_of_squares, int64_t tokens, double grad_clip,
                      Directive directive) {
  Verdict verdict;
  verdict.directive = directive;
  verdict.gradient_norm = std::sqrt(sum_of_squares) / static_cast<double>(tokens);
  verdict.apply = std::isfinite(verdict.gradient_norm);
  if (!verdict.apply) return verdict;
  const double clip =
      grad_clip > 0 ? std::min(1.0, grad_clip / (verdict.gradient_norm + kClipEpsilon)) : 1.0;
  verdict.gradient_scale = clip / static_cast<double>(tokens);
  return verdict;
}

std::vector<double> ToDoubles(const Verdict& verdict) {
  return {verdict.apply ? 1.0 : 0.0, verdict.gradient_norm, verdict.gradient_scale,
          static_cast<double>(verdict.directive)};
}

absl::StatusOr<Verdict> VerdictFromDoubles(absl::Span<const double> values) {
  constexpr size_t kDoubles = 4;
  if (values.size() != kDoubles) {
    return absl::InvalidArgumentError(
        absl::StrCat("verdict: ", values.size(), " numbers, ", kDoubles, " expected"));
  }
  Verdict verdict;
  if (values[0] != 0 && values[0] != 1) return Refuse("apply", values[0]);
  verdict.apply = values[0] == 1;
  verdict.gradient_norm = values[1];
  if (std::isfinite(values[1]) != verdict.apply || values[1] < 0) {
    return Refuse(verdict.apply ? "the norm to apply" : "the norm to skip", values[1]);
  }
  verdict.gradient_scale = values[2];
  const bool scale_fits =
      verdict.apply ? std::isfinite(values[2]) && values[2] > 0 : values[2] == 0;
  if (!scale_fits) return Refuse("the gradient scale", values[2]);
  for (const Directive directive : {Directive::kNone, Directive::kStop}) {
    if (values[3] != static_cast<double>(directive)) continue;
    verdict.directive = directive;
    return verdict;
  }
  return Refuse("the directive", values[3]);
}

}  // namespace longhaul::worker
