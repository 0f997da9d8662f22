#include "compute/backend/cpu/logarithm.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace longhaul::compute {

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s) with s = (m - 1) / (m + 1), whose
// series in s^2 <= 0.0295 ends below 1e-18 after twelve terms.
double Logarithm(double x) {
  if (!(x <= std::numeric_limits<double>::max())) return x;
  constexpr uint64_t kRootHalf = std::bit_cast<uint64_t>(0.70710678118654752440);
  const int64_t distance = static_cast<int64_t>(std::bit_cast<uint64_t>(x) - kRootHalf);
  const int64_t exponent = distance >> 52;
  const double m =
      std::bit_cast<double>(std::bit_cast<uint64_t>(x) - (static_cast<uint64_t>(exponent) << 52));

  const double f = m - 1;
  const double s = f / (m + 1);
  const double square = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  // 2 s = f - s f, which keeps the leading term exact.
  const double remainder = s * (2 * series - f);

  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits, so that the product is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double e = static_cast<double>(exponent);
  return e * kLn2High + (f + (remainder + e * kLn2Low));
}

}  // namespace longhaul::compute
