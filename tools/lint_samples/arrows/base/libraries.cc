#include <base/check.h>
#include <cuda_runtime.h>
#include <grpcpp/grpcpp.h>
#include <nccl.h>

#include "google/protobuf/message.h"
#include "longhaul/v1/plan.pb.h"
