// Copies on the CPU.
#ifndef LONGHAUL_COMPUTE_OPS_COPY_CPU_H_
#define LONGHAUL_COMPUTE_OPS_COPY_CPU_H_

#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute::cpu {

// As compute::Copy.
template <typename T>
void Copy(Backend& backend, absl::Span<const T> input, absl::Span<T> output);

}  // namespace longhaul::compute::cpu

#endif  // LONGHAUL_COMPUTE_OPS_COPY_CPU_H_
