#include "compute/testing/golden.h"

#include "compute/stage/stage.h"
#include "daemon/config.h"
