#include <algorithm>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/ops/copy.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::Copy(absl::Span<const T> input, absl::Span<T> output) const {
  ForChunks(backend_, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              std::copy(input.begin() + begin, input.begin() + end, output.begin() + begin);
            });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T) \
  template absl::Status CpuKernels<T>::Copy(absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
