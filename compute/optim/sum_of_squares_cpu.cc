#include <algorithm>
#include <array>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/optim/sum_of_squares.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::SumOfSquares(absl::Span<const T> values, double* sum) const {
  // Their sums wait on the stack, so a long tensor has longer chunks, not more.
  constexpr int64_t kChunksMax = 256;
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t chunk = std::max(kChunkElements, ChunkCount(n, kChunksMax));
  std::array<double, kChunksMax> sums = {};
  ForChunks(backend_, n, chunk, [&](int64_t begin, int64_t end) {
    sums[static_cast<size_t>(begin / chunk)] =
        BestKernels<T>().sum_of_squares(values.data() + begin, end - begin);
  });
  double total = 0;
  for (int64_t i = 0; i < ChunkCount(n, chunk); ++i) total += sums[static_cast<size_t>(i)];
  *sum = total;
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T) \
  template absl::Status CpuKernels<T>::SumOfSquares(absl::Span<const T>, double*) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
