// Upper bounds on the numbers of a rotary embedding: far above those of any model, far below what
// would overflow while its table is made.
#ifndef LONGHAUL_MODEL_ROTARY_LIMITS_H_
#define LONGHAUL_MODEL_ROTARY_LIMITS_H_

namespace longhaul::model {

inline constexpr double kRotaryThetaMax = 1e12;
inline constexpr double kRotaryFactorMax = 1e6;  // each of the three of a scaling

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ROTARY_LIMITS_H_
