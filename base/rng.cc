#include "base/rng.h"

#include <cmath>

#include "base/elementary.h"

namespace longhaul {
namespace {

double UnitInterval(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kMultiplier0 * c[0];
    const uint64_t p1 = kMultiplier1 * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

std::array<uint32_t, 4> RandomKey(uint64_t seed, RandomStream stream, uint32_t a, uint32_t b) {
  return Philox4x32({static_cast<uint32_t>(stream), a, b, 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

std::array<uint32_t, 4> RandomBits(uint64_t seed, RandomStream stream, uint32_t a, uint32_t b,
                                   uint64_t index) {
  const auto key = RandomKey(seed, stream, a, b);
  return Philox4x32(
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), key[2], key[3]},
      {key[0], key[1]});
}

uint64_t RandomBelow(uint64_t bound, uint64_t bits) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

std::array<double, 2> RandomNormalPair(const std::array<uint32_t, 4>& bits) {
  const double u = 1.0 - UnitInterval(bits[0], bits[1]);  // (0, 1]
  const auto [sine, cosine] = SineCosineOfTurns(UnitInterval(bits[2], bits[3]));
  const double radius = std::sqrt(-2.0 * NaturalLogarithm(u));
  return {radius * cosine, radius * sine};
}

}  // namespace longhaul
