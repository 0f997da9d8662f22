// From the worker's structs to the coordinator's: what daemon/rpc does through Protobuf.
#ifndef LONGHAUL_TESTS_SIM_CONVERT_H_
#define LONGHAUL_TESTS_SIM_CONVERT_H_

#include <cstdint>

#include "coordinator/core/events.h"
#include "worker/host/messages.h"

namespace longhaul::sim {

// A worker's message as an event of its session. Register becomes NodeConnected.
coordinator::Event ToEvent(uint64_t session, const worker::ToCoordinator& message);

}  // namespace longhaul::sim

#endif  // LONGHAUL_TESTS_SIM_CONVERT_H_
