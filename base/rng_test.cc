#include "base/rng.h"

#include <cmath>

#include "gtest/gtest.h"

namespace longhaul {
namespace {

// Known-answer vectors published with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomNormalPair, MatchesBoxMullerFromLibm) {
  for (uint32_t i = 0; i < 20000; ++i) {
    const auto bits = RandomBits(7, RandomStream::kInitialWeights, 1, 2, i);
    const auto unit = [](uint32_t high, uint32_t low) {
      return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
    };
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(bits[0], bits[1])));
    const double angle = 2.0 * M_PI * unit(bits[2], bits[3]);
    const auto [a, b] = RandomNormalPair(bits);
    EXPECT_NEAR(a, radius * std::cos(angle), 1e-12);
    EXPECT_NEAR(b, radius * std::sin(angle), 1e-12);
  }
}

TEST(RandomBelow, StaysBelowAndCoversTheRange) {
  EXPECT_EQ(RandomBelow(10, 0), 0u);
  EXPECT_EQ(RandomBelow(10, ~uint64_t{0}), 9u);
  EXPECT_EQ(RandomBelow(1, ~uint64_t{0}), 0u);
}

TEST(RandomBits, StreamsDiffer) {
  EXPECT_NE(RandomBits(1, RandomStream::kBatch, 0, 0, 0),
            RandomBits(1, RandomStream::kDropout, 0, 0, 0));
  EXPECT_NE(RandomBits(1, RandomStream::kBatch, 1, 0, 0),
            RandomBits(1, RandomStream::kBatch, 0, 1, 0));
  EXPECT_NE(RandomBits(1, RandomStream::kBatch, 0, 0, 0),
            RandomBits(uint64_t{1} << 32, RandomStream::kBatch, 0, 0, 0));
}

}  // namespace
}  // namespace longhaul
