#include "compute/ops/dropout.h"

#include <cmath>
#include <limits>

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {
namespace {

constexpr absl::string_view kOp = "dropout";
constexpr int64_t kTwoTo32 = int64_t{1} << 32;

absl::Status CheckShape(const DropoutShape& shape) {
  LH_RETURN_IF_ERROR(CheckExtents(
      kOp, {{"rows", shape.rows}, {"context", shape.context}, {"width", shape.width}}));
  if (shape.rows % shape.context != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kOp, ": ", shape.rows, " rows are no whole sequences of ", shape.context));
  }
  if (shape.context > 4 * kTwoTo32 / shape.width) {
    return absl::InvalidArgumentError(absl::StrCat(kOp, ": a sequence of ", shape.context, " x ",
                                                   shape.width, " elements has no counters"));
  }
  if (!(shape.probability >= 0 && shape.probability < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kOp, ": probability is ", shape.probability, ", not in [0, 1)"));
  }
  return absl::OkStatus();
}

absl::Status CheckKey(const DropoutKey& key, int64_t sequences) {
  const auto fits = [](int64_t value) { return value >= 0 && value < kTwoTo32; };
  if (fits(key.step) && fits(key.op) && fits(key.first_sequence) &&
      key.first_sequence <= kTwoTo32 - sequences) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(kOp, ": step ", key.step, ", operator ", key.op,
                                                 " or sequence ", key.first_sequence,
                                                 " is outside [0, 2^32)"));
}

}  // namespace

uint32_t DropoutThreshold(double probability) {
  const double threshold = std::round(probability * 0x1p32);
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  return threshold < kMax ? static_cast<uint32_t>(threshold) : kMax;
}

template <typename T>
absl::Status Dropout(Backend& backend, const DropoutShape& shape, const DropoutKey& key,
                     absl::Span<const T> input, absl::Span<T> output) {
  LH_RETURN_IF_ERROR(CheckShape(shape));
  LH_RETURN_IF_ERROR(CheckKey(key, shape.rows / shape.context));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output", output.size(), {shape.rows, shape.width}));
  return KernelsOf<T>(backend).Dropout(shape, key, input, output);
}

template absl::Status Dropout<float>(Backend&, const DropoutShape&, const DropoutKey&,
                                     absl::Span<const float>, absl::Span<float>);
template absl::Status Dropout<double>(Backend&, const DropoutShape&, const DropoutKey&,
                                      absl::Span<const double>, absl::Span<double>);
template absl::Status Dropout<BFloat16>(Backend&, const DropoutShape&, const DropoutKey&,
                                        absl::Span<const BFloat16>, absl::Span<BFloat16>);

}  // namespace longhaul::compute
