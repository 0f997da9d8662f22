#include "base/rng.h"

#include <cmath>

namespace longhaul {
namespace {

// Natural logarithm for x in (0, 1], by argument reduction to [sqrt(1/2), sqrt(2)) and the series
// of atanh; error below 1e-15 relative, enough for random numbers.
double PortableLog(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2.0;
    --exponent;
  }
  const double t = (m - 1.0) / (m + 1.0);
  const double t2 = t * t;
  double sum = 0.0;
  for (int k = 27; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2.0 * t * sum + exponent * 0.69314718055994530942;
}

// sine and cosine of 2 pi u for u in [0, 1): reduction to an eighth of a turn, then Taylor series.
std::array<double, 2> PortableSinCosTurn(double u) {
  const int quadrant = static_cast<int>(u * 4.0 + 0.5);
  const double r = (u - quadrant * 0.25) * 6.28318530717958647692;
  const double r2 = r * r;
  double sine = 0.0, cosine = 0.0;
  for (int k = 10; k >= 1; --k) {
    sine = (sine + 1.0) * (-r2 / ((2.0 * k) * (2.0 * k + 1.0)));
    cosine = (cosine + 1.0) * (-r2 / ((2.0 * k - 1.0) * (2.0 * k)));
  }
  sine = (sine + 1.0) * r;
  cosine = cosine + 1.0;
  switch (quadrant & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

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
  const auto [sine, cosine] = PortableSinCosTurn(UnitInterval(bits[2], bits[3]));
  const double radius = std::sqrt(-2.0 * PortableLog(u));
  return {radius * cosine, radius * sine};
}

}  // namespace longhaul
