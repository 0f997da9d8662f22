// The CPU kernels of dropout.
#ifndef LONGHAUL_COMPUTE_OPS_DROPOUT_CPU_H_
#define LONGHAUL_COMPUTE_OPS_DROPOUT_CPU_H_

#include "absl/types/span.h"
#include "compute/ops/dropout.h"

namespace longhaul::compute::cpu {

// As in dropout.h; arguments have been checked.
template <typename T>
void Dropout(Backend& backend, const DropoutShape& shape, const DropoutKey& key,
             absl::Span<const T> input, absl::Span<T> output);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_DROPOUT_CPU_H_
