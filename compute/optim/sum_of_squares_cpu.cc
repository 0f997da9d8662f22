#include "compute/optim/sum_of_squares_cpu.h"

#include <algorithm>
#include <array>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute::cpu {

template <typename T>
double SumOfSquares(Backend& backend, absl::Span<const T> values) {
  // Their sums wait on the stack, so a long tensor has longer chunks, not more.
  constexpr int64_t kChunksMax = 256;
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t chunk = std::max(kChunkElements, ChunkCount(n, kChunksMax));
  std::array<double, kChunksMax> sums = {};
  ForChunks(backend, n, chunk, [&](int64_t begin, int64_t end) {
    sums[static_cast<size_t>(begin / chunk)] =
        BestKernels<T>().sum_of_squares(values.data() + begin, end - begin);
  });
  double total = 0;
  for (int64_t i = 0; i < ChunkCount(n, chunk); ++i) total += sums[static_cast<size_t>(i)];
  return total;
}

template double SumOfSquares<float>(Backend&, absl::Span<const float>);
template double SumOfSquares<double>(Backend&, absl::Span<const double>);

}  // namespace longhaul::compute::cpu
