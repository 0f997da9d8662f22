#include <cublasLt.h>
#include <cuda_runtime.h>

#include "compute/backend/backend.h"
