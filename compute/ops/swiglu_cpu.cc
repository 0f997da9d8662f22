#include "compute/ops/swiglu_cpu.h"

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute::cpu {

template <typename T>
void SwiGluForward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                   absl::Span<T> output) {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = input.data() + row * 2 * width;
      kernels.swiglu(gate, gate + width, output.data() + row * width, width);
    }
  });
}

template <typename T>
void SwiGluBackward(Backend& backend, const SwiGluShape& shape, absl::Span<const T> input,
                    absl::Span<const T> output_gradient, absl::Span<T> input_gradient) {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = input.data() + row * 2 * width;
      T* gate_gradient = input_gradient.data() + row * 2 * width;
      kernels.swiglu_backward(gate, gate + width, output_gradient.data() + row * width,
                              gate_gradient, gate_gradient + width, width);
    }
  });
}

#define LONGHAUL_INSTANTIATE(T)                                                      \
  template void SwiGluForward<T>(Backend&, const SwiGluShape&, absl::Span<const T>,  \
                                 absl::Span<T>);                                     \
  template void SwiGluBackward<T>(Backend&, const SwiGluShape&, absl::Span<const T>, \
                                  absl::Span<const T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute::cpu
