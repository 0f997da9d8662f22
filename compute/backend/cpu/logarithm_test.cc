#include "compute/backend/cpu/logarithm.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

// Distance in units in the last place of the result, against the library in extended precision.
double ErrorInUlps(double x) {
  const long double exact = std::log(static_cast<long double>(x));
  const double rounded = static_cast<double>(exact);
  const double ulp = std::nextafter(std::abs(rounded), std::numeric_limits<double>::infinity()) -
                     std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(Logarithm(x)) - exact)) / ulp;
}

TEST(Logarithm, AgreesWithTheLibrary) {
  for (double x = 0.01; x < 1e6; x *= 1.00037) EXPECT_LE(ErrorInUlps(x), 1.5) << x;
  for (int k = 1; k < 52; ++k) {
    EXPECT_LE(ErrorInUlps(1 + std::ldexp(1.0, -k)), 1.5) << k;
    EXPECT_LE(ErrorInUlps(1 - std::ldexp(1.0, -k)), 1.5) << k;
  }
  EXPECT_LE(ErrorInUlps(std::numeric_limits<double>::max()), 1.5);
  EXPECT_LE(ErrorInUlps(std::numeric_limits<double>::min()), 1.5);
}

TEST(Logarithm, SpecialValues) {
  EXPECT_EQ(Logarithm(1), 0);
  EXPECT_EQ(Logarithm(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(Logarithm(NAN)));
}

}  // namespace
}  // namespace longhaul::compute
