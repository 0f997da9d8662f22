#include "base/rng.h"
#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/dropout.h"

namespace longhaul::compute {
namespace {

struct Words {
  uint32_t words[4];
};

// Philox4x32-10, as base/rng.h has it for the host.
__device__ Words Philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                        uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

constexpr int kLanes = 16;  // a draw is for elements so far apart
constexpr int kElementsOfGroup = 4 * kLanes;

// A thread for each draw of each sequence.
template <typename T>
struct DropAt {
  uint32_t key0, key1, counter2, counter3;
  uint32_t first_sequence, threshold;
  int64_t elements;  // of a sequence
  Wide<T> scale;
  const T* input;
  T* output;

  // Of a sequence.
  __host__ __device__ int64_t draws() const {
    return (elements + kElementsOfGroup - 1) / kElementsOfGroup * kLanes;
  }

  __device__ void operator()(int64_t i) const {
    const int64_t sequence = i / draws(), draw = i % draws();
    const Words drawn =
        Philox(static_cast<uint32_t>(draw), first_sequence + static_cast<uint32_t>(sequence),
               counter2, counter3, key0, key1);
    const int64_t first = draw / kLanes * kElementsOfGroup + draw % kLanes;
    LONGHAUL_UNROLL
    for (int word = 0; word < 4; ++word) {
      const int64_t element = first + word * kLanes, at = sequence * elements + element;
      if (element >= elements) continue;
      output[at] = cuda::Narrow<T>(
          drawn.words[word] < threshold ? Wide<T>(0) : static_cast<Wide<T>>(input[at]) * scale);
    }
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::Dropout(const DropoutShape& shape, const DropoutKey& key,
                                     absl::Span<const T> input, absl::Span<T> output) const {
  const auto words = RandomKey(key.seed, RandomStream::kDropout, static_cast<uint32_t>(key.step),
                               static_cast<uint32_t>(key.op));
  const DropAt<T> drop{.key0 = words[0],
                       .key1 = words[1],
                       .counter2 = words[2],
                       .counter3 = words[3],
                       .first_sequence = static_cast<uint32_t>(key.first_sequence),
                       .threshold = DropoutThreshold(shape.probability),
                       .elements = shape.context * shape.width,
                       .scale = static_cast<Wide<T>>(1 / (1 - shape.probability)),
                       .input = input.data(),
                       .output = output.data()};
  return cuda::ForEach(backend_, "dropout", shape.rows / shape.context * drop.draws(), drop);
}

#define LONGHAUL_INSTANTIATE(T)                                                         \
  template absl::Status CudaKernels<T>::Dropout(const DropoutShape&, const DropoutKey&, \
                                                absl::Span<const T>, absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
