// Private to checkpoint/: the floating-point dtypes of safetensors as float, each value exactly.
#ifndef LONGHAUL_CHECKPOINT_FLOAT_FORMATS_H_
#define LONGHAUL_CHECKPOINT_FLOAT_FORMATS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul::checkpoint {

// Whether DecodeFloats reads it: F32, F16, BF16.
bool IsFloatFormat(absl::string_view dtype);

// `bytes` hold values.size() little-endian numbers of the dtype.
void DecodeFloats(absl::string_view dtype, absl::string_view bytes, absl::Span<float> values);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_FLOAT_FORMATS_H_
