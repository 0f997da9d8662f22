#include "base/ids.h"
#include "compression/frame.h"
#include "coordinator/core/core.h"
#include "worker/host/worker_host.h"
