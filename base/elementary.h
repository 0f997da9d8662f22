// Elementary functions made of +, -, *, / and sqrt on doubles alone: what decides a run's bits
// (rotary angles, initial weights, the learning rate) is then the same with every C library and on
// every processor.
#ifndef LONGHAUL_BASE_ELEMENTARY_H_
#define LONGHAUL_BASE_ELEMENTARY_H_

namespace longhaul {

// The sum of both, which is not evaluated; |low| is at most half a unit in the last place of
// `high`. About 105 bits (Dekker 1971, "A floating-point technique for extending the available
// precision").
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

// Relative error below 2^-100, as long as nothing leaves the range of normal numbers and
// intermediate products stay below 2^990.
DoubleDouble operator+(DoubleDouble a, DoubleDouble b);
DoubleDouble operator-(DoubleDouble a, DoubleDouble b);
DoubleDouble operator*(DoubleDouble a, DoubleDouble b);
DoubleDouble operator/(DoubleDouble a, DoubleDouble b);

// With the double nearest to what the first leaves over.
inline constexpr DoubleDouble kTwoPi = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

// Natural logarithm of a positive normal number; error below one unit in the last place.
double NaturalLogarithm(double x);

// base^exponent for a positive normal base and |exponent * ln(base)| <= 700; relative error below
// 2^-90. A smaller result loses bits as any subnormal number does, and is 0 at last.
DoubleDouble Power(double base, DoubleDouble exponent);

struct SineCosine {
  double sine = 0;
  double cosine = 1;
};
// Of an angle in radians, |angle| <= 2^30; error below one unit in the last place and 2^-70.
SineCosine SineCosineOf(DoubleDouble angle);
// Of 2 pi `turns`, turns in [0, 1]; error below one unit in the last place, exact at quarters.
SineCosine SineCosineOfTurns(double turns);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_ELEMENTARY_H_
