// The constants of one AdamW step.
#ifndef LONGHAUL_COMPUTE_OPTIM_ADAMW_FACTORS_H_
#define LONGHAUL_COMPUTE_OPTIM_ADAMW_FACTORS_H_

#include "compute/backend/adamw_factors.h"
#include "compute/optim/adamw.h"

namespace longhaul::compute {

// The same on every machine: no function of the C library decides a bit. T is float or double.
template <typename T>
AdamWFactors<T> FactorsOf(const AdamWStep& step);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPTIM_ADAMW_FACTORS_H_
