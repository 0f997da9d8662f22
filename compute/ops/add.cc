#include "compute/ops/add.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

template <typename T>
absl::Status Add(Backend& backend, absl::Span<const T> a, absl::Span<const T> b,
                 absl::Span<T> output) {
  constexpr absl::string_view kOp = "add";
  const int64_t n = static_cast<int64_t>(output.size());
  LH_RETURN_IF_ERROR(CheckElements(kOp, "a", a.size(), {n}));
  LH_RETURN_IF_ERROR(CheckElements(kOp, "b", b.size(), {n}));
  return KernelsOf<T>(backend).Add(a, b, output);
}

template absl::Status Add<float>(Backend&, absl::Span<const float>, absl::Span<const float>,
                                 absl::Span<float>);
template absl::Status Add<double>(Backend&, absl::Span<const double>, absl::Span<const double>,
                                  absl::Span<double>);
template absl::Status Add<BFloat16>(Backend&, absl::Span<const BFloat16>,
                                    absl::Span<const BFloat16>, absl::Span<BFloat16>);

}  // namespace longhaul::compute
