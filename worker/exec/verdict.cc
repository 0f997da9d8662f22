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
  verdict.tokens = tokens;
  const double divisor = static_cast<double>(std::max<int64_t>(tokens, 1));
  verdict.gradient_norm = std::sqrt(sum_of_squares) / divisor;
  verdict.apply = std::isfinite(verdict.gradient_norm) && tokens > 0;
  if (!verdict.apply) return verdict;
  const double clip =
      grad_clip > 0 ? std::min(1.0, grad_clip / (verdict.gradient_norm + kClipEpsilon)) : 1.0;
  verdict.gradient_scale = clip / divisor;
  return verdict;
}

std::vector<double> ToDoubles(const Verdict& verdict) {
  return {verdict.apply ? 1.0 : 0.0, verdict.gradient_norm, verdict.gradient_scale,
          static_cast<double>(verdict.tokens), static_cast<double>(verdict.directive)};
}

absl::StatusOr<Verdict> VerdictFromDoubles(absl::Span<const double> values, int64_t tokens_max) {
  constexpr size_t kDoubles = 5;
  if (values.size() != kDoubles) {
    return absl::InvalidArgumentError(
        absl::StrCat("verdict: ", values.size(), " numbers, ", kDoubles, " expected"));
  }
  Verdict verdict;
  if (values[0] != 0 && values[0] != 1) return Refuse("apply", values[0]);
  verdict.apply = values[0] == 1;
  if (!(values[3] >= 0 && values[3] <= static_cast<double>(tokens_max)) ||
      values[3] != std::floor(values[3])) {
    return Refuse("the number of tokens", values[3]);
  }
  verdict.tokens = static_cast<int64_t>(values[3]);
  if (verdict.apply && verdict.tokens == 0) return Refuse("the number of tokens to apply", 0);
  verdict.gradient_norm = values[1];
  const bool finite = std::isfinite(values[1]);
  if ((verdict.tokens > 0 && finite != verdict.apply) || values[1] < 0) {
    return Refuse(verdict.apply ? "the norm to apply" : "the norm to skip", values[1]);
  }
  verdict.gradient_scale = values[2];
  const bool scale_fits =
      verdict.apply ? std::isfinite(values[2]) && values[2] > 0 : values[2] == 0;
  if (!scale_fits) return Refuse("the gradient scale", values[2]);
  for (const Directive directive : {Directive::kNone, Directive::kStop}) {
    if (values[4] != static_cast<double>(directive)) continue;
    verdict.directive = directive;
    return verdict;
  }
  return Refuse("the directive", values[4]);
}

}  // namespace longhaul::worker
