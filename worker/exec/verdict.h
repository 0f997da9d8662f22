// The verdict on a step: what the first stage decides from the norm and every stage obeys.
#ifndef LONGHAUL_WORKER_EXEC_VERDICT_H_
#define LONGHAUL_WORKER_EXEC_VERDICT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/exec/stage_executor.h"

namespace longhaul::worker {

struct Verdict {
  // false: the step is skipped, since the norm is not finite or no token counts.
  bool apply = false;
  double gradient_norm = 0;   // of the mean gradient over the step's tokens, before clipping
  double gradient_scale = 0;  // for the gradient sums: clip factor / tokens; 0 if skipped
  int64_t tokens = 0;         // of the global batch, those that are targets of the loss
  Directive directive = Directive::kNone;
  bool operator==(const Verdict&) const = default;
};

// `sum_of_squares` is that of the gradient summed over `tokens` tokens. The clip factor is
// min(1, grad_clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it; grad_clip 0: 1.
// Without tokens there is no mean: the norm is then 0 if the sum is.
Verdict DecideVerdict(double sum_of_squares, int64_t tokens, double grad_clip, Directive directive);

// The frame of kind verdict: {apply, norm, scale, tokens, directive}.
std::vector<double> ToDoubles(const Verdict& verdict);
// InvalidArgument says what no first stage would have sent. `tokens_max`: of a global batch.
absl::StatusOr<Verdict> VerdictFromDoubles(absl::Span<const double> values, int64_t tokens_max);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_VERDICT_H_
