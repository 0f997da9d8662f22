#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/optim/round.h"

namespace longhaul::compute {

// Where both types are one, it is a copy.
template <typename T>
absl::Status CpuKernels<T>::Round(absl::Span<const Wide<T>> from, absl::Span<T> to) const {
  return backend_.Copy(to.data(), from.data(), from.size() * sizeof(T));
}

template absl::Status CpuKernels<float>::Round(absl::Span<const float>, absl::Span<float>) const;
template absl::Status CpuKernels<double>::Round(absl::Span<const double>, absl::Span<double>) const;

}  // namespace longhaul::compute
