#include "compute/ops/copy.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

template <typename T>
absl::Status Copy(Backend& backend, absl::Span<const T> input, absl::Span<T> output) {
  constexpr absl::string_view kOp = "copy";
  LH_RETURN_IF_ERROR(
      CheckElements(kOp, "input", input.size(), {static_cast<int64_t>(output.size())}));
  return KernelsOf<T>(backend).Copy(input, output);
}

template absl::Status Copy<float>(Backend&, absl::Span<const float>, absl::Span<float>);
template absl::Status Copy<double>(Backend&, absl::Span<const double>, absl::Span<double>);

}  // namespace longhaul::compute
