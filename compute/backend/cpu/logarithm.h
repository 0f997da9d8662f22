// The logarithm for the few places that need one number: log-sum-exp of a row.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_LOGARITHM_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_LOGARITHM_H_

namespace longhaul::compute {

// Natural logarithm to about 1 ulp by our own series, so that its bits depend on no library. x is a
// positive normal number; infinity and NaN are returned as they are.
double Logarithm(double x);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_LOGARITHM_H_
