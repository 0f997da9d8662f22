#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/gelu.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::GeluForward(absl::Span<const T> input, absl::Span<T> output) const {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend_, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.gelu(input.data() + begin, output.data() + begin, end - begin);
            });
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuKernels<T>::GeluBackward(absl::Span<const T> input,
                                         absl::Span<const T> output_gradient,
                                         absl::Span<T> input_gradient) const {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend_, static_cast<int64_t>(input_gradient.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.gelu_backward(input.data() + begin, output_gradient.data() + begin,
                                    input_gradient.data() + begin, end - begin);
            });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                               \
  template absl::Status CpuKernels<T>::GeluForward(absl::Span<const T>, absl::Span<T>) const; \
  template absl::Status CpuKernels<T>::GeluBackward(absl::Span<const T>, absl::Span<const T>, \
                                                    absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
