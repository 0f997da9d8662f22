// In place of nccl_collective.cc where there is no NCCL.
#include "worker/comm/nccl_collective.h"

namespace longhaul::worker {

DeviceRendezvousFactory NcclRendezvousFactory() { return nullptr; }

}  // namespace longhaul::worker
