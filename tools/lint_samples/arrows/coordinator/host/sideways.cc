#include "coordinator/core/core.h"
#include "worker/comm/exchange.h"
