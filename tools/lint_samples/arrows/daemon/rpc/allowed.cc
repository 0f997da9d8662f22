#include "coordinator/host/coordinator_host.h"
#include "grpcpp/grpcpp.h"
#include "longhaul/v1/plan.pb.h"
#include "worker/host/worker_host.h"
