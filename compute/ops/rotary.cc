#include "compute/ops/rotary.h"

#include <vector>

#include "base/elementary.h"
#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"
#include "model/rotary_limits.h"

namespace longhaul::compute {
namespace {

absl::Status CheckHeadWidth(absl::string_view op, int64_t head_width) {
  if (head_width % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": a head of ", head_width,
                                                 " elements has no pairs; the width must be even"));
}

absl::Status CheckSpec(absl::string_view op, const RotarySpec& spec) {
  LH_RETURN_IF_ERROR(CheckExtents(op, {{"context", spec.context},
                                       {"head_width", spec.head_width},
                                       {"original_context", spec.scaling.original_context}}));
  LH_RETURN_IF_ERROR(CheckHeadWidth(op, spec.head_width));
  const model::RotaryScaling& scaling = spec.scaling;
  if (spec.theta > 1 && spec.theta <= model::kRotaryThetaMax && scaling.factor >= 1 &&
      scaling.factor <= model::kRotaryFactorMax && scaling.low_frequency_factor > 0 &&
      scaling.high_frequency_factor > scaling.low_frequency_factor &&
      scaling.high_frequency_factor <= model::kRotaryFactorMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      op, ": theta ", spec.theta, " must be above 1, the factor ", scaling.factor,
      " at least 1, the frequency factors ", scaling.low_frequency_factor, " and ",
      scaling.high_frequency_factor, " positive and ascending, and none of them too large"));
}

DoubleDouble Scaled(const model::RotaryScaling& scaling, DoubleDouble frequency) {
  const DoubleDouble context{static_cast<double>(scaling.original_context)};
  const DoubleDouble waves = context * frequency / kTwoPi;  // in the context
  const DoubleDouble low{scaling.low_frequency_factor}, high{scaling.high_frequency_factor};
  if (waves.high > high.high) return frequency;
  const DoubleDouble slow = frequency / DoubleDouble{scaling.factor};
  if (waves.high < low.high) return slow;
  const DoubleDouble kept = (waves - low) / (high - low);
  return (DoubleDouble{1} - kept) * slow + kept * frequency;
}

// Of each pair, in radians for each position.
std::vector<DoubleDouble> Frequencies(const RotarySpec& spec) {
  std::vector<DoubleDouble> frequencies;
  const DoubleDouble width{static_cast<double>(spec.head_width)};
  for (int64_t i = 0; i < spec.head_width / 2; ++i) {
    const DoubleDouble exponent = DoubleDouble{static_cast<double>(-2 * i)} / width;
    frequencies.push_back(Scaled(spec.scaling, Power(spec.theta, exponent)));
  }
  return frequencies;
}

absl::Status Check(absl::string_view op, const RotaryShape& shape, size_t table) {
  LH_RETURN_IF_ERROR(CheckExtents(op, {{"rows", shape.rows},
                                       {"context", shape.context},
                                       {"heads", shape.heads},
                                       {"head_width", shape.head_width},
                                       {"row_width", shape.row_width}}));
  LH_RETURN_IF_ERROR(CheckHeadWidth(op, shape.head_width));
  if (shape.heads * shape.head_width > shape.row_width) {
    return absl::InvalidArgumentError(absl::StrCat(op, ": ", shape.heads, " heads of ",
                                                   shape.head_width, " do not fit in a row of ",
                                                   shape.row_width));
  }
  return CheckElements(op, "table", table, {shape.context, shape.head_width});
}

}  // namespace

template <typename T>
absl::Status RotaryTable(Backend& backend, const RotarySpec& spec, absl::Span<Wide<T>> table) {
  constexpr absl::string_view kOp = "rotary table";
  LH_RETURN_IF_ERROR(CheckSpec(kOp, spec));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "table", table.size(), {spec.context, spec.head_width}));
  const int64_t pairs = spec.head_width / 2;
  std::vector<Wide<T>> host(table.size());
  const std::vector<DoubleDouble> frequencies = Frequencies(spec);
  for (int64_t position = 0; position < spec.context; ++position) {
    const DoubleDouble turned{static_cast<double>(position)};
    const absl::Span<Wide<T>> row = absl::MakeSpan(host).subspan(
        static_cast<size_t>(position * spec.head_width), static_cast<size_t>(spec.head_width));
    for (int64_t i = 0; i < pairs; ++i) {
      const SineCosine of = SineCosineOf(turned * frequencies[static_cast<size_t>(i)]);
      row[static_cast<size_t>(i)] = static_cast<Wide<T>>(of.cosine);
      row[static_cast<size_t>(pairs + i)] = static_cast<Wide<T>>(of.sine);
    }
  }
  LH_RETURN_IF_ERROR(
      backend.CopyToDevice(table.data(), host.data(), host.size() * sizeof(Wide<T>)));
  return backend.Synchronize();
}

template <typename T>
absl::Status RotaryForward(Backend& backend, const RotaryShape& shape,
                           absl::Span<const Wide<T>> table, absl::Span<const T> input,
                           absl::Span<T> output) {
  constexpr absl::string_view kOp = "rotary";
  LH_RETURN_IF_ERROR(Check(kOp, shape, table.size()));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {shape.rows, shape.row_width}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output", output.size(), {shape.rows, shape.row_width}));
  return KernelsOf<T>(backend).Rotary(shape, Wide<T>{1}, table, input, output);
}

template <typename T>
absl::Status RotaryBackward(Backend& backend, const RotaryShape& shape,
                            absl::Span<const Wide<T>> table, absl::Span<const T> output_gradient,
                            absl::Span<T> input_gradient) {
  constexpr absl::string_view kOp = "rotary backward";
  LH_RETURN_IF_ERROR(Check(kOp, shape, table.size()));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "output_gradient", output_gradient.size(), {shape.rows, shape.row_width}));
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "input_gradient", input_gradient.size(), {shape.rows, shape.row_width}));
  return KernelsOf<T>(backend).Rotary(shape, Wide<T>{-1}, table, output_gradient, input_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status RotaryTable<T>(Backend&, const RotarySpec&, absl::Span<Wide<T>>);          \
  template absl::Status RotaryForward<T>(Backend&, const RotaryShape&, absl::Span<const Wide<T>>,  \
                                         absl::Span<const T>, absl::Span<T>);                      \
  template absl::Status RotaryBackward<T>(Backend&, const RotaryShape&, absl::Span<const Wide<T>>, \
                                          absl::Span<const T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
