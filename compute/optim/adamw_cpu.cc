#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/optim/adamw.h"
#include "compute/optim/adamw_factors.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::AdamW(const AdamWStep& step, absl::Span<const T> gradient,
                                  absl::Span<T> weights, absl::Span<T> first_moment,
                                  absl::Span<T> second_moment) const {
  const AdamWFactors<T> factors = FactorsOf<T>(step);
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend_, static_cast<int64_t>(weights.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.adamw(factors, gradient.data() + begin, weights.data() + begin,
                            first_moment.data() + begin, second_moment.data() + begin, end - begin);
            });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status CpuKernels<T>::AdamW(const AdamWStep&, absl::Span<const T>, absl::Span<T>, \
                                             absl::Span<T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
