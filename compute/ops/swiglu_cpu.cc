#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/swiglu.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::SwiGluForward(const SwiGluShape& shape, absl::Span<const T> input,
                                          absl::Span<T> output) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend_, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = input.data() + row * 2 * width;
      kernels.swiglu(gate, gate + width, output.data() + row * width, width);
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuKernels<T>::SwiGluBackward(const SwiGluShape& shape, absl::Span<const T> input,
                                           absl::Span<const T> output_gradient,
                                           absl::Span<T> input_gradient) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t width = shape.width;
  ForChunks(backend_, shape.rows, ChunkRows(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = input.data() + row * 2 * width;
      T* gate_gradient = input_gradient.data() + row * 2 * width;
      kernels.swiglu_backward(gate, gate + width, output_gradient.data() + row * width,
                              gate_gradient, gate_gradient + width, width);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                \
  template absl::Status CpuKernels<T>::SwiGluForward(const SwiGluShape&, absl::Span<const T>,  \
                                                     absl::Span<T>) const;                     \
  template absl::Status CpuKernels<T>::SwiGluBackward(const SwiGluShape&, absl::Span<const T>, \
                                                      absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
