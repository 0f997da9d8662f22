// Copies within a device.
#ifndef LONGHAUL_COMPUTE_OPS_COPY_H_
#define LONGHAUL_COMPUTE_OPS_COPY_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// output = input, bit for bit; spans of equal length that do not overlap. T is float or double.
template <typename T>
absl::Status Copy(Backend& backend, absl::Span<const T> input, absl::Span<T> output);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_COPY_H_
