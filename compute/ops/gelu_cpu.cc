#include "compute/ops/gelu_cpu.h"

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute::cpu {

template <typename T>
void GeluForward(Backend& backend, absl::Span<const T> input, absl::Span<T> output) {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.gelu(input.data() + begin, output.data() + begin, end - begin);
            });
}

template <typename T>
void GeluBackward(Backend& backend, absl::Span<const T> input, absl::Span<const T> output_gradient,
                  absl::Span<T> input_gradient) {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend, static_cast<int64_t>(input_gradient.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.gelu_backward(input.data() + begin, output_gradient.data() + begin,
                                    input_gradient.data() + begin, end - begin);
            });
}

#define LONGHAUL_INSTANTIATE(T)                                               \
  template void GeluForward<T>(Backend&, absl::Span<const T>, absl::Span<T>); \
  template void GeluBackward<T>(Backend&, absl::Span<const T>, absl::Span<const T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute::cpu
