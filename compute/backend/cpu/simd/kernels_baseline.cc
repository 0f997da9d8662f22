#define LONGHAUL_INSTRUCTION_SET baseline
#define LONGHAUL_REGISTER_BYTES 16
#include "compute/backend/cpu/simd/kernel_table.h"
