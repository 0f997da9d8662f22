#include "compute/ops/gelu.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

template <typename T>
absl::Status GeluForward(Backend& backend, absl::Span<const T> input, absl::Span<T> output) {
  constexpr absl::string_view kOp = "gelu";
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "input", input.size(), {static_cast<int64_t>(output.size())}));
  return KernelsOf<T>(backend).GeluForward(input, output);
}

template <typename T>
absl::Status GeluBackward(Backend& backend, absl::Span<const T> input,
                          absl::Span<const T> output_gradient, absl::Span<T> input_gradient) {
  constexpr absl::string_view kOp = "gelu backward";
  const int64_t n = static_cast<int64_t>(input_gradient.size());
  LH_RETURN_IF_ERROR(CheckElements(kOp, "input", input.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "output_gradient", output_gradient.size(), {n}));
  return KernelsOf<T>(backend).GeluBackward(input, output_gradient, input_gradient);
}

#define LONGHAUL_INSTANTIATE(T)                                                             \
  template absl::Status GeluForward<T>(Backend&, absl::Span<const T>, absl::Span<T>);       \
  template absl::Status GeluBackward<T>(Backend&, absl::Span<const T>, absl::Span<const T>, \
                                        absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
