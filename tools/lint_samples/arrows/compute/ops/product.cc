#include "compute/testing/golden.h"
#include "coordinator/plan/testing.h"
