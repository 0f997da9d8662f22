#define LONGHAUL_INSTRUCTION_SET baseline
#define LONGHAUL_REGISTER_BYTES 16
#define LONGHAUL_FUSED_MULTIPLY_ADD 0
#include "compute/backend/cpu/simd/kernel_table.h"
