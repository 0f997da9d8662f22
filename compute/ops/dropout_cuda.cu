#include "base/rng.h"
#include "compute/backend/cuda/launch.h"
#include "compute/ops/dropout.h"

namespace longhaul::compute {
namespace {

// Philox4x32-10, as base/rng.h has it for the host. Returns word `word` of the draw.
__device__ uint32_t PhiloxWord(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                               uint32_t k1, int word) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
}

template <typename T>
struct DropAt {
  uint32_t key0, key1, counter2, counter3;
  uint32_t first_sequence, threshold;
  int64_t elements;  // of a sequence
  T scale;
  const T* input;
  T* output;

  __device__ void operator()(int64_t i) const {
    const int64_t e = i % elements;
    const uint32_t sequence = first_sequence + static_cast<uint32_t>(i / elements);
    const uint32_t draw = static_cast<uint32_t>(e / 64 * 16 + e % 16);
    const uint32_t word =
        PhiloxWord(draw, sequence, counter2, counter3, key0, key1, static_cast<int>(e / 16 % 4));
    output[i] = word < threshold ? T(0) : input[i] * scale;
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Dropout(const DropoutShape& shape, const DropoutKey& key,
                                     absl::Span<const T> input, absl::Span<T> output) const {
  const auto words = RandomKey(key.seed, RandomStream::kDropout, static_cast<uint32_t>(key.step),
                               static_cast<uint32_t>(key.op));
  return cuda::ForEach(
      backend_, "dropout", static_cast<int64_t>(output.size()),
      DropAt<T>{words[0], words[1], words[2], words[3], static_cast<uint32_t>(key.first_sequence),
                DropoutThreshold(shape.probability), shape.context * shape.width,
                static_cast<T>(1 / (1 - shape.probability)), input.data(), output.data()});
}

#define LONGHAUL_INSTANTIATE(T)                                                         \
  template absl::Status CudaKernels<T>::Dropout(const DropoutShape&, const DropoutKey&, \
                                                absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
