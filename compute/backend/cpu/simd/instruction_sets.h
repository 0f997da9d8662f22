// The builds of the kernels, one translation unit each.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_INSTRUCTION_SETS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_INSTRUCTION_SETS_H_

#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute {

namespace baseline {
InstructionSet Set();
}
namespace avx2 {
InstructionSet Set();
}
namespace avx512 {
InstructionSet Set();
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_INSTRUCTION_SETS_H_
