// Facts and readings of cards, between Protobuf and the plain data of control/device.h.
#ifndef LONGHAUL_DAEMON_RPC_CONVERT_DEVICE_H_
#define LONGHAUL_DAEMON_RPC_CONVERT_DEVICE_H_

#include <string>

#include "control/device.h"
#include "coordinator/plan/planner.h"
#include "daemon/rpc/wire_check.h"
#include "longhaul/v1/device.pb.h"

namespace longhaul::daemon {

// Add the fields to an empty message.
void ToWire(const control::CardFacts& facts, v1::CardFacts* wire);
void ToWire(const control::CardReadings& readings, v1::CardReadings* wire);

// What is not acceptable is noted in `check`.
control::CardFacts FromWire(const v1::CardFacts& wire, WireCheck& check);
control::CardReadings FromWire(const v1::CardReadings& wire, WireCheck& check);
// Builds that only know processors send none.
coordinator::DeviceKind DeviceKindFromWire(const std::string& kind, WireCheck& check);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CONVERT_DEVICE_H_
