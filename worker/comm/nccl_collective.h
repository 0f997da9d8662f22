// Sums between the cards of one site by NCCL, which neither encrypts nor authenticates: it is only
// for nodes that say `trusted_network: true`.
#ifndef LONGHAUL_WORKER_COMM_NCCL_COLLECTIVE_H_
#define LONGHAUL_WORKER_COMM_NCCL_COLLECTIVE_H_

#include "worker/comm/device_rendezvous.h"

namespace longhaul::worker {

// Null in programs that are linked with longhaul_worker_comm_nccl_absent. What it makes needs a
// CUDA backend. The order of additions is NCCL's: the same for one topology and version, not that
// of the tree; every replica still gets the same bits. A peer's death shows at once only where NCCL
// talks to it over a network: between cards of one host a call ends by Cancel or its deadline.
DeviceRendezvousFactory NcclRendezvousFactory();

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_NCCL_COLLECTIVE_H_
