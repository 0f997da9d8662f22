// Counter-based random numbers: a pure function of (key, counter), so that any process can produce
// any element of any stream without the ones before it.
#ifndef LONGHAUL_BASE_RNG_H_
#define LONGHAUL_BASE_RNG_H_

#include <array>
#include <cstdint>

namespace longhaul {

// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 4).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream of random numbers is for; part of its key, so that no two uses share numbers.
enum class RandomStream : uint32_t { kBatch = 1, kInitialWeights = 2, kDropout = 3, kSampling = 4 };

// 128 random bits for element `index` of substream (a, b). All arguments are the caller's names
// for the place in the run (step, sequence, tensor), never thread, node or stage.
std::array<uint32_t, 4> RandomBits(uint64_t seed, RandomStream stream, uint32_t a, uint32_t b,
                                   uint64_t index);

// What RandomBits makes of all but the index, for loops over indices: they are
// Philox4x32({low half of index, high half, key[2], key[3]}, {key[0], key[1]}).
std::array<uint32_t, 4> RandomKey(uint64_t seed, RandomStream stream, uint32_t a, uint32_t b);

// Uniform in [0, bound) without bias worth mentioning (64-bit multiply-shift); bound > 0.
uint64_t RandomBelow(uint64_t bound, uint64_t bits);

// Two independent standard normal numbers from 128 random bits (Box and Muller 1958).
// Uses only +, -, *, / and sqrt on doubles, so the result is the same on every IEEE machine.
std::array<double, 2> RandomNormalPair(const std::array<uint32_t, 4>& bits);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_RNG_H_
