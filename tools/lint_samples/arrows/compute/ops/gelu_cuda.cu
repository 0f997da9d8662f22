#include <cuda_runtime.h>

#include "compute/ops/gelu.h"
