// Dropout with a mask drawn as it is applied. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_DROPOUT_KERNEL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_DROPOUT_KERNEL_H_

#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Sixteen draws side by side, in plain loops that the compiler vectorises.
struct Draws {
  uint32_t words[4 * kLanes];  // first words, second words, ...
};

// One of the ten rounds of Philox4x32 (Salmon et al., SC 2011, section 4).
inline void PhiloxRound(uint32_t key0, uint32_t key1, Draws& draws) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  uint32_t* const words = draws.words;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t product0 = kMultiplier0 * words[i];
    const uint64_t product1 = kMultiplier1 * words[2 * kLanes + i];
    words[i] = static_cast<uint32_t>(product1 >> 32) ^ words[kLanes + i] ^ key0;
    words[kLanes + i] = static_cast<uint32_t>(product1);
    words[2 * kLanes + i] = static_cast<uint32_t>(product0 >> 32) ^ words[3 * kLanes + i] ^ key1;
    words[3 * kLanes + i] = static_cast<uint32_t>(product0);
  }
}

template <typename T>
Draws DrawBlock(const DropoutDraw<T>& draw, uint32_t first_counter) {
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  Draws draws;
  for (int i = 0; i < kLanes; ++i) {
    draws.words[i] = first_counter + static_cast<uint32_t>(i);
    for (int word = 1; word < 4; ++word) draws.words[word * kLanes + i] = draw.counter[word - 1];
  }
  uint32_t key0 = draw.key[0], key1 = draw.key[1];
  for (int round = 0; round < 10; ++round) {
    PhiloxRound(key0, key1, draws);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return draws;
}

template <typename T>
void Drop(const DropoutDraw<T>& draw, int64_t first, const T* input, T* output, int64_t n) {
  constexpr int64_t kBlock = 4 * kLanes;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const Draws draws = DrawBlock(draw, static_cast<uint32_t>((first + begin) / kBlock * kLanes));
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    for (int64_t i = 0; i < count; ++i) {
      const T kept = input[begin + i] * draw.scale;
      output[begin + i] = draws.words[i] < draw.threshold ? T{0} : kept;
    }
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_DROPOUT_KERNEL_H_
