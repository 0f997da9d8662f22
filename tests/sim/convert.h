// Between the coordinator's structs and the worker's: what daemon/rpc does through Protobuf.
#ifndef LONGHAUL_TESTS_SIM_CONVERT_H_
#define LONGHAUL_TESTS_SIM_CONVERT_H_

#include <cstdint>
#include <optional>

#include "coordinator/core/events.h"
#include "coordinator/host/worker_messages.h"
#include "worker/host/messages.h"

namespace longhaul::sim {

worker::ToWorker ToWorkerMessage(const coordinator::WorkerMessage& message);

// A worker's message as an event of its session. Register becomes NodeConnected.
coordinator::Event ToEvent(uint64_t session, const worker::ToCoordinator& message);

}  // namespace longhaul::sim

#endif  // LONGHAUL_TESTS_SIM_CONVERT_H_
