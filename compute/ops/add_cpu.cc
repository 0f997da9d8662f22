#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/add.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::Add(absl::Span<const T> a, absl::Span<const T> b,
                                absl::Span<T> output) const {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend_, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.add(a.data() + begin, b.data() + begin, output.data() + begin, end - begin);
            });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                      \
  template absl::Status CpuKernels<T>::Add(absl::Span<const T>, absl::Span<const T>, \
                                           absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
