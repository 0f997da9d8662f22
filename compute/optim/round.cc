#include "compute/optim/round.h"

#include "base/status_macros.h"
#include "compute/backend/operator_kernels.h"
#include "compute/ops/shape_check.h"

namespace longhaul::compute {

template <typename T>
absl::Status Round(Backend& backend, absl::Span<const Wide<T>> from, absl::Span<T> to) {
  LH_RETURN_IF_ERROR(
      CheckElements("round", "from", from.size(), {static_cast<int64_t>(to.size())}));
  return KernelsOf<T>(backend).Round(from, to);
}

template absl::Status Round<float>(Backend&, absl::Span<const float>, absl::Span<float>);
template absl::Status Round<double>(Backend&, absl::Span<const double>, absl::Span<double>);
template absl::Status Round<BFloat16>(Backend&, absl::Span<const float>, absl::Span<BFloat16>);

}  // namespace longhaul::compute
