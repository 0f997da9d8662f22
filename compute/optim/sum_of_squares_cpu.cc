#include <algorithm>
#include <array>

#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/optim/sum_of_squares.h"

namespace longhaul::compute {

namespace {

template <typename T>
double SumOf(Backend& backend, absl::Span<const T> values) {
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

}  // namespace

template <typename T>
absl::Status CpuKernels<T>::SumsOfSquares(absl::Span<const absl::Span<const T>> tensors,
                                          double* sums) const {
  for (size_t i = 0; i < tensors.size(); ++i) sums[i] = SumOf(backend_, tensors[i]);
  return absl::OkStatus();
}

template absl::Status CpuKernels<float>::SumsOfSquares(absl::Span<const absl::Span<const float>>,
                                                       double*) const;
template absl::Status CpuKernels<double>::SumsOfSquares(absl::Span<const absl::Span<const double>>,
                                                        double*) const;

}  // namespace longhaul::compute
