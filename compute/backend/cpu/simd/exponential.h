// exp over registers by our own polynomial, so that its bits depend on no library and no compiler.
// Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_EXPONENTIAL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_EXPONENTIAL_H_

#include "compute/backend/cpu/simd/lanes.h"
#include "compute/backend/cpu/simd/multiply_add.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// exp(x) = 2^n exp(r) with n = round(x / ln 2), |r| <= ln(2) / 2 (Cody and Waite 1980, chapter 6).
template <typename T>
struct ExponentialConstants;

template <>
struct ExponentialConstants<float> {
  static constexpr float kInputMin = -104.0f;  // below: 0
  static constexpr float kInputMax = 89.0f;    // above: infinity
  static constexpr float kInverseLn2 = 0x1.715476p+0f;
  static constexpr float kLn2High = 0x1.63p-1f;  // 9 bits, so that n * kLn2High is exact
  static constexpr float kLn2Low = -0x1.bd0106p-13f;
  static constexpr float kRounder = 0x1.8p+23f;  // adding it rounds to an integer
  static constexpr uint32_t kMantissaBits = 23;
  static constexpr uint32_t kExponentBias = 127;
  // exp(r) = 1 + r + r^2 P(r): minimax by reweighted least squares, relative error 3.7e-9.
  static constexpr float kPolynomial[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f,
                                          0x1.123a2p-7f, 0x1.6a23cep-10f};
};

template <>
struct ExponentialConstants<double> {
  static constexpr double kInputMin = -746.0;
  static constexpr double kInputMax = 710.0;
  static constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kRounder = 0x1.8p+52;
  static constexpr uint64_t kMantissaBits = 52;
  static constexpr uint64_t kExponentBias = 1023;
  // Taylor's series, 1/(k+2)!: the first term left out is below 5e-18.
  static constexpr double kPolynomial[] = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
};

template <typename T>
inline __attribute__((always_inline)) Register<T> Exponential(Register<T> x) {
  using Constants = ExponentialConstants<T>;
  using Bits = typename RegisterOf<T>::Bits;
  // Comparisons are false for NaN, which therefore stays and comes out as NaN.
  x = x < Splat<T>(Constants::kInputMin) ? Splat<T>(Constants::kInputMin) : x;
  x = x > Splat<T>(Constants::kInputMax) ? Splat<T>(Constants::kInputMax) : x;
  const Register<T> rounded =
      MultiplyAdd(x, Splat<T>(Constants::kInverseLn2), Splat<T>(Constants::kRounder));
  const Register<T> n = rounded - Constants::kRounder;
  const Register<T> high = MultiplyAdd(n, Splat<T>(-Constants::kLn2High), x);
  const Register<T> r = MultiplyAdd(n, Splat<T>(-Constants::kLn2Low), high);

  constexpr int kTerms = sizeof(Constants::kPolynomial) / sizeof(T);
  Register<T> p = Splat<T>(Constants::kPolynomial[kTerms - 1]);
#pragma GCC unroll 16
  for (int k = kTerms - 2; k >= 0; --k) {
    p = MultiplyAdd(p, r, Splat<T>(Constants::kPolynomial[k]));
  }
  const Register<T> fraction = MultiplyAdd(r * r, p, r) + T{1};

  // 2^n in two factors, so that both stay normal where the result overflows or is subnormal. The
  // offset keeps the halved number positive; twice the bias is even and larger than any |n|.
  constexpr auto kBias = Constants::kExponentBias;
  const Bits shifted = (Bits)rounded - (Bits)Splat<T>(Constants::kRounder) + 2 * kBias;
  const Bits first = shifted >> 1;
  const Bits second = shifted - first;
  return fraction * (Register<T>)(first << Constants::kMantissaBits) *
         (Register<T>)(second << Constants::kMantissaBits);
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_EXPONENTIAL_H_
