// In place of nccl_collective.cc in builds without CUDA.
#include "worker/comm/nccl_collective.h"

namespace longhaul::worker {

DeviceRendezvousFactory NcclRendezvousFactory() { return nullptr; }

}  // namespace longhaul::worker
