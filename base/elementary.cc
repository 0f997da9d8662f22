#include "base/elementary.h"

#include <cmath>
#include <cstdint>

namespace longhaul {
namespace {

// Each with the double nearest to what the first leaves over.
constexpr DoubleDouble kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr DoubleDouble kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
// ln 2 once more: 32 bits, whose product with an exponent is exact, and the rest.
constexpr double kLn2Head = 0x1.62e42feep-1;
constexpr double kLn2Tail = 0x1.a39ef35793c76p-33;
constexpr double kRounder = 0x1.8p+52;  // adding and subtracting it rounds to a whole number

double RoundToWhole(double x) { return (x + kRounder) - kRounder; }

// |a| >= |b|, or a = 0.
DoubleDouble FastTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly (Knuth 1969).
DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}

// a in two parts of 26 bits (Veltkamp 1968).
DoubleDouble Split(double a) {
  const double scaled = 134217729.0 * a;  // 2^27 + 1
  const double high = scaled - (scaled - a);
  return {high, a - high};
}

// a * b exactly (Dekker 1971).
DoubleDouble TwoProduct(double a, double b) {
  const double product = a * b;
  const DoubleDouble x = Split(a), y = Split(b);
  const double error =
      ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {product, error};
}

// Sum of coefficients[k] z^k.
template <int kCount>
double Polynomial(const double (&coefficients)[kCount], double z) {
  double sum = coefficients[kCount - 1];
  for (int k = kCount - 2; k >= 0; --k) sum = sum * z + coefficients[k];
  return sum;
}

// Of |r| <= pi/4 (a little more does no harm), by Taylor's series; what is left out is below 2^-62.
SineCosine OfReduced(DoubleDouble r) {
  // sin(x) = x + x^3 S(x^2), cos(x) = 1 - x^2/2 + x^4 C(x^2).
  constexpr double kSine[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  constexpr double kCosine[] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const double x = r.high, square = x * x, half = 0.5 * square;
  const double rest = 1.0 - half;
  return {
      x + (x * square * Polynomial(kSine, square) + r.low * rest),
      rest + (((1.0 - rest) - half) + (square * square * Polynomial(kCosine, square) - x * r.low))};
}

// The angle is r and so many quarters of a turn.
SineCosine Turned(DoubleDouble r, int64_t quarters) {
  const SineCosine of = OfReduced(r);
  switch (quarters & 3) {
    case 0:
      return of;
    case 1:
      return {of.cosine, -of.sine};
    case 2:
      return {-of.sine, -of.cosine};
    default:
      return {-of.cosine, of.sine};
  }
}

// exp(x), |x| <= 745: x = n ln 2 + 256 r, Taylor's series for exp(r) - 1, eight squarings.
DoubleDouble Exponential(DoubleDouble x) {
  constexpr int kTerms = 11;  // (ln 2 / 512)^11 / 11! is below 2^-129
  constexpr int kSquarings = 8;
  const double n = RoundToWhole(x.high / kLn2.high);
  const DoubleDouble reduced = x - DoubleDouble{n} * kLn2;
  const DoubleDouble r = {reduced.high / 256, reduced.low / 256};
  DoubleDouble series = {1};
  for (int k = kTerms; k >= 2; --k) {
    series = DoubleDouble{1} + series * r / DoubleDouble{static_cast<double>(k)};
  }
  DoubleDouble minus_one = series * r;
  for (int k = 0; k < kSquarings; ++k) {  // (1 + m)^2 - 1
    minus_one = DoubleDouble{2 * minus_one.high, 2 * minus_one.low} + minus_one * minus_one;
  }
  const DoubleDouble fraction = DoubleDouble{1} + minus_one;
  const int exponent = static_cast<int>(n);
  return {std::ldexp(fraction.high, exponent), std::ldexp(fraction.low, exponent)};
}

// x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)).
double Mantissa(double x, int& exponent) {
  const double mantissa = std::frexp(x, &exponent);
  if (mantissa >= 0.70710678118654752440) return mantissa;
  --exponent;
  return 2 * mantissa;
}

// One step of Newton's method doubles the digits of the logarithm of the mantissa.
DoubleDouble Logarithm(double x) {
  int exponent = 0;
  const DoubleDouble mantissa = {Mantissa(x, exponent)};
  const double near = NaturalLogarithm(mantissa.high);
  const DoubleDouble correction = mantissa * Exponential({-near}) - DoubleDouble{1};
  return DoubleDouble{static_cast<double>(exponent)} * kLn2 + (DoubleDouble{near} + correction);
}

}  // namespace

DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = TwoSum(a.high, b.high), low = TwoSum(a.low, b.low);
  const DoubleDouble sum = FastTwoSum(high.high, high.low + low.high);
  return FastTwoSum(sum.high, sum.low + low.low);
}

DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + DoubleDouble{-b.high, -b.low}; }

DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = TwoProduct(a.high, b.high);
  return FastTwoSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

// Long division, three digits of 53 bits.
DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  DoubleDouble rest = a - DoubleDouble{first} * b;
  const double second = rest.high / b.high;
  rest = rest - DoubleDouble{second} * b;
  return FastTwoSum(first, second) + DoubleDouble{rest.high / b.high};
}

// ln m = 2 atanh(t), t = (m - 1) / (m + 1), with the rounding of t carried along.
double NaturalLogarithm(double x) {
  // 2 atanh(t) = 2 t + t^3 A(t^2); |t| < 0.172, so what is left out is below 2^-60 of it.
  constexpr double kSeries[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  int exponent = 0;
  const double mantissa = Mantissa(x, exponent);
  const double numerator = mantissa - 1.0;  // exact
  const DoubleDouble denominator = TwoSum(mantissa, 1.0);
  const double t = numerator / denominator.high;
  const DoubleDouble back = TwoProduct(t, denominator.high);
  const double t_low =
      ((numerator - back.high) - back.low - t * denominator.low) / denominator.high;
  const double square = t * t;
  const DoubleDouble head = TwoSum(exponent * kLn2Head, 2.0 * t);
  return head.high + (head.low + (exponent * kLn2Tail +
                                  (2.0 * t_low + t * square * Polynomial(kSeries, square))));
}

DoubleDouble Power(double base, DoubleDouble exponent) {
  return Exponential(exponent * Logarithm(base));
}

SineCosine SineCosineOf(DoubleDouble angle) {
  const double quarters = RoundToWhole(angle.high / kHalfPi.high);
  return Turned(angle - DoubleDouble{quarters} * kHalfPi, static_cast<int64_t>(quarters));
}

SineCosine SineCosineOfTurns(double turns) {
  const auto quarters = static_cast<int64_t>(turns * 4.0 + 0.5);
  const double rest = turns - static_cast<double>(quarters) * 0.25;  // exact
  return Turned(DoubleDouble{rest} * kTwoPi, quarters);
}

}  // namespace longhaul
