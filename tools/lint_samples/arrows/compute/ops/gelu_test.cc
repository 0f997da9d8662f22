#include "compute/testing/golden.h"
