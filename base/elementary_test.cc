// The tables are rounded values of mpmath 1.3.0 with 400 bits.
#include "base/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace longhaul {
namespace {

// Distance in units in the last place of `right`, a rounded value.
double Ulps(double value, double right) {
  if (value == right) return 0;
  const double size = std::max(std::abs(right), std::numeric_limits<double>::min());
  const double unit = std::nextafter(size, std::numeric_limits<double>::infinity()) - size;
  return std::abs(value - right) / unit;
}

TEST(NaturalLogarithm, KnownValues) {
  const struct {
    double x, right;
  } cases[] = {
      {0x1p-1022, -0x1.6232bdd7abcd2p+9},
      {0x1p-53, -0x1.25e4f7b2737fap+5},
      {0x1.fffffffffffffp-1, -0x1p-53},
      {0x1.0000000000001p+0, 0x1.fffffffffffffp-53},
      {0x1.6a09e667f3bccp-1, -0x1.62e42fefa39f1p-2},
      {0x1.6a09e667f3bcdp-1, -0x1.62e42fefa39eep-2},
      {0x1.8p+0, 0x1.9f323ecbf984cp-2},
      {0x1.999999999999ap-4, -0x1.26bb1bbb55515p+1},
      {0x1.fffffffffffffp+1023, 0x1.62e42fefa39efp+9},
  };
  for (const auto& [x, right] : cases) EXPECT_LE(Ulps(NaturalLogarithm(x), right), 1) << x;
  EXPECT_EQ(NaturalLogarithm(1), 0);
}

TEST(SineCosineOf, KnownValues) {
  const struct {
    DoubleDouble angle;
    double sine, cosine;
  } cases[] = {
      {{0, 0}, 0, 0x1p+0},
      {{0x1p-1, 0}, 0x1.eaee8744b05fp-2, 0x1.c1528065b7d5p-1},
      {{0x1.921fb54442d18p-1, 0}, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1},
      {{0x1.921fb54442d18p+0, 0}, 0x1p+0, 0x1.1a62633145c07p-54},
      {{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}, 0x1p+0, -0x1.f1976b7ed8fbcp-110},
      {{0x1.63p+8, 0}, -0x1.f9bd0307d1de3p-16, -0x1.fffffffc18e4cp-1},
      {{0x1.63p+8, 0x1p-46}, -0x1.f9bd030bd1de3p-16, -0x1.fffffffc18e4cp-1},
      {{-0x1p+0, 0}, -0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1},
      {{0x1.4ac55cp+22, 0}, -0x1.4823bba96de72p-25, -0x1.ffffffffffff9p-1},
      {{0x1.ffffp+16, 0x1p-38}, -0x1.268613f61237p-1, -0x1.a2cebbb50f4dap-1},
      {{0x1.dcd65p+29, 0}, 0x1.1778cae83c69bp-1, 0x1.acff8c7364234p-1},
  };
  for (const auto& [angle, sine, cosine] : cases) {
    const SineCosine of = SineCosineOf(angle);
    EXPECT_LE(std::abs(of.sine - sine), std::max(std::abs(sine) * 0x1p-52, 0x1p-70)) << angle.high;
    EXPECT_LE(std::abs(of.cosine - cosine), std::max(std::abs(cosine) * 0x1p-52, 0x1p-70))
        << angle.high;
  }
}

TEST(SineCosineOfTurns, KnownValues) {
  const struct {
    double turns, sine, cosine;
  } cases[] = {
      {0, 0, 0x1p+0},
      {0x1p-3, 0x1.6a09e667f3bcdp-1, 0x1.6a09e667f3bcdp-1},
      {0x1p-2, 0x1p+0, 0},
      {0x1p-1, 0, -0x1p+0},
      {0x1.8p-1, -0x1p+0, 0},
      {0x1p+0, 0, 0x1p+0},
      {0x1.5555555555555p-2, 0x1.bb67ae8584cabp-1, -0x1.ffffffffffffep-2},
      {0x1.fffffffffffffp-1, -0x1.921fb54442d18p-51, 0x1p+0},
      {0x1p-53, 0x1.921fb54442d18p-51, 0x1p+0},
      {0x1.801a36e2eb1c4p-2, 0x1.69cfa5e1dc115p-1, -0x1.6a441d90200a6p-1},
  };
  for (const auto& [turns, sine, cosine] : cases) {
    const SineCosine of = SineCosineOfTurns(turns);
    EXPECT_LE(Ulps(of.sine, sine), 1) << turns;
    EXPECT_LE(Ulps(of.cosine, cosine), 1) << turns;
  }
}

TEST(Power, KnownValues) {
  const struct {
    double base;
    DoubleDouble exponent, right;
  } cases[] = {
      {10000.0, {0, 0}, {0x1p+0, 0}},
      {10000.0, {-0x1p-5, 0}, {0x1.7ff2224115d9ap-1, -0x1.b28f224d5d8b8p-55}},
      {10000.0, {-0x1.fp-1, 0}, {0x1.17a8e301c4436p-13, 0x1.0f84f4a18a2dbp-67}},
      {500000.0, {-0x1.f8p-1, 0}, {0x1.4985fec80a8cbp-19, 0x1.6c73194a65546p-78}},
      {1000000.0,
       {-0x1.5555555555555p-1, -0x1.5555555555555p-55},
       {0x1.a36e2eb1c432dp-14, -0x1.6a161e4f765fap-68}},
      {1.0000001, {-0x1p-1, 0}, {0x1.fffffe5280d87p-1, -0x1.c8b724f0c6f84p-56}},
      {2.0, {0x1.4p+3, 0}, {0x1p+10, 0}},
      {1.7e+308, {-0x1p-1, 0}, {0x1.0740c2d75e7cep-512, -0x1.d5d5da73bdf22p-567}},
  };
  for (const auto& [base, exponent, right] : cases) {
    const DoubleDouble power = Power(base, exponent);
    const double error = (power.high - right.high) + (power.low - right.low);
    EXPECT_LE(std::abs(error), right.high * 0x1p-90) << base;
  }
}

// Many arguments, where the library has a longer type to be right with.
TEST(Elementary, AgreesWithLongDouble) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double";
  for (uint32_t i = 0; i < 20000; ++i) {
    const auto bits = RandomBits(5, RandomStream::kSampling, 0, 0, i);
    const double unit = bits[0] * 0x1p-32 + bits[1] * 0x1p-64;
    const double x = std::ldexp(1 + unit, static_cast<int>(bits[2] % 80) - 60);
    EXPECT_LE(Ulps(NaturalLogarithm(x), static_cast<double>(std::log(static_cast<long double>(x)))),
              1)
        << x;
    const DoubleDouble angle = {std::ldexp(unit, static_cast<int>(bits[3] % 20)), 0};
    const SineCosine of = SineCosineOf(angle);
    EXPECT_LE(Ulps(of.sine, static_cast<double>(std::sin(static_cast<long double>(angle.high)))), 1)
        << angle.high;
    EXPECT_LE(Ulps(of.cosine, static_cast<double>(std::cos(static_cast<long double>(angle.high)))),
              1)
        << angle.high;
  }
}

TEST(DoubleDouble, KeepsWhatADoubleDrops) {
  const DoubleDouble third = DoubleDouble{1} / DoubleDouble{3};
  const DoubleDouble rest = third * DoubleDouble{3} - DoubleDouble{1};
  EXPECT_LE(std::abs(rest.high), 0x1p-100);
  const DoubleDouble small = (DoubleDouble{1} + DoubleDouble{0x1p-80}) - DoubleDouble{1};
  EXPECT_EQ(small.high, 0x1p-80);
  const DoubleDouble square = (DoubleDouble{1} + DoubleDouble{0x1p-40}) * DoubleDouble{1 + 0x1p-40};
  EXPECT_EQ(square.high, 1 + 0x1p-39);
  EXPECT_EQ(square.low, 0x1p-80);
}

}  // namespace
}  // namespace longhaul
