#define LONGHAUL_INSTRUCTION_SET avx512
#define LONGHAUL_REGISTER_BYTES 64
#include "compute/backend/cpu/simd/kernel_table.h"
