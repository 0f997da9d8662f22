#define LONGHAUL_INSTRUCTION_SET avx2
#define LONGHAUL_REGISTER_BYTES 32
#define LONGHAUL_FUSED_MULTIPLY_ADD 1
#include "compute/backend/cpu/simd/kernel_table.h"
