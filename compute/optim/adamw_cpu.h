// The CPU kernels of AdamW.
#ifndef LONGHAUL_COMPUTE_OPTIM_ADAMW_CPU_H_
#define LONGHAUL_COMPUTE_OPTIM_ADAMW_CPU_H_

#include "absl/types/span.h"
#include "compute/optim/adamw.h"

namespace longhaul::compute::cpu {

// As in adamw.h; arguments have been checked.
template <typename T>
void AdamW(Backend& backend, const AdamWStep& step, absl::Span<const T> gradient,
           absl::Span<T> weights, absl::Span<T> first_moment, absl::Span<T> second_moment);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPTIM_ADAMW_CPU_H_
