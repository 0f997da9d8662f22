#include "base/rng.h"
#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/dropout.h"

namespace longhaul::compute {

// kChunkElements is a multiple of the 64 elements that are drawn together.
template <typename T>
absl::Status CpuKernels<T>::Dropout(const DropoutShape& shape, const DropoutKey& key,
                                    absl::Span<const T> input, absl::Span<T> output) const {
  const auto words = RandomKey(key.seed, RandomStream::kDropout, static_cast<uint32_t>(key.step),
                               static_cast<uint32_t>(key.op));
  const DropoutDraw<T> any{.key = {words[0], words[1]},
                           .counter = {0, words[2], words[3]},
                           .threshold = DropoutThreshold(shape.probability),
                           .scale = static_cast<T>(1 / (1 - shape.probability))};
  const int64_t elements = shape.context * shape.width;
  const int64_t chunks = ChunkCount(elements, kChunkElements);
  backend_.ParallelFor(shape.rows / shape.context * chunks, [&](int64_t index) {
    const int64_t sequence = index / chunks;
    DropoutDraw<T> draw = any;
    draw.counter[0] = static_cast<uint32_t>(key.first_sequence + sequence);
    RunChunk(index % chunks, elements, kChunkElements, [&](int64_t begin, int64_t end) {
      const int64_t at = sequence * elements + begin;
      BestKernels<T>().drop(draw, begin, input.data() + at, output.data() + at, end - begin);
    });
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                        \
  template absl::Status CpuKernels<T>::Dropout(const DropoutShape&, const DropoutKey&, \
                                               absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
