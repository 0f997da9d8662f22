#define LONGHAUL_INSTRUCTION_SET avx2
#define LONGHAUL_REGISTER_BYTES 32
#include "compute/backend/cpu/simd/kernel_table.h"
