#include "tests/sim/convert.h"

#include <variant>

namespace longhaul::sim {
namespace {

coordinator::NodeFacts Convert(const worker::NodeFacts& facts) {
  coordinator::NodeFacts converted;
  converted.profile.name = facts.name;
  converted.profile.site = facts.site;
  converted.profile.host = facts.host;
  converted.profile.host_cores = facts.host_cores;
  converted.profile.flops_per_second = facts.flops_per_second;
  converted.profile.bytes_per_second = facts.bytes_per_second;
  converted.profile.threads = facts.threads;
  converted.profile.memory_bytes = facts.memory_bytes;
  converted.profile.process_bytes = facts.process_bytes;
  converted.profile.numeric_class = facts.numeric_class;
  converted.profile.trusted_network = facts.trusted_network;
  converted.profile.bfloat16_flops_per_second = facts.bfloat16_flops_per_second;
  if (facts.device_kind == control::kCudaDevice) {
    converted.profile.device_kind = coordinator::DeviceKind::kCuda;
  }
  converted.profile.device_name = facts.device_name;
  if (facts.card) {
    converted.profile.device_uuid = facts.card->uuid;
    converted.profile.device_memory_bytes = facts.card->memory_bytes;
  }
  converted.card = facts.card;
  converted.incarnation = facts.incarnation;
  converted.data_address = facts.data_address;
  converted.version = facts.version;
  return converted;
}

coordinator::Event Convert(uint64_t session, const worker::Register& m) {
  return coordinator::NodeConnected{session, "in-process", Convert(m.facts), m.attachment};
}
coordinator::Event Convert(uint64_t session, const worker::Heartbeat& m) {
  return coordinator::NodeHeartbeat{session, m.card, m.leaving};
}
template <typename Message>
coordinator::Event Convert(uint64_t session, const Message& m) {
  return coordinator::From<Message>{session, m};
}

}  // namespace

coordinator::Event ToEvent(uint64_t session, const worker::ToCoordinator& message) {
  return std::visit([session](const auto& m) { return Convert(session, m); }, message);
}

}  // namespace longhaul::sim
