#include "compute/ops/add_cpu.h"

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute::cpu {

template <typename T>
void Add(Backend& backend, absl::Span<const T> a, absl::Span<const T> b, absl::Span<T> output) {
  const Kernels<T>& kernels = BestKernels<T>();
  ForChunks(backend, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              kernels.add(a.data() + begin, b.data() + begin, output.data() + begin, end - begin);
            });
}

template void Add<float>(Backend&, absl::Span<const float>, absl::Span<const float>,
                         absl::Span<float>);
template void Add<double>(Backend&, absl::Span<const double>, absl::Span<const double>,
                          absl::Span<double>);

}  // namespace longhaul::compute::cpu
