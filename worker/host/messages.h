// What a worker says and hears on the control stream: what it shares with the coordinator, and how
// it registers.
#ifndef LONGHAUL_WORKER_HOST_MESSAGES_H_
#define LONGHAUL_WORKER_HOST_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "control/device.h"
#include "control/messages.h"

namespace longhaul::worker {

using control::Abort;
using control::Accepted;
using control::Assignment;
using control::Attachment;
using control::Ended;
using control::Failed;
using control::Preparing;
using control::Ready;
using control::Refused;
using control::Released;
using control::ShardFailed;
using control::ShardStored;
using control::StagePeer;
using control::Start;
using control::StepAcknowledged;
using control::StepReport;
using control::Stop;
using control::ToWorker;

struct NodeFacts {
  std::string name;
  std::string site;
  std::string host;
  uint64_t incarnation = 0;
  std::string data_address;
  std::string version;
  std::string numeric_class;
  int threads = 1;
  int host_cores = 0;  // of the host; 0: unknown
  int64_t memory_bytes = 0;
  int64_t process_bytes = 0;  // that the process takes without a stage; 0: unknown
  double flops_per_second = 0;
  double bfloat16_flops_per_second = 0;  // 0: it does not compute in bfloat16
  double bytes_per_second = 0;
  bool trusted_network = false;  // of the site: replicas may sum gradients over it
  std::string device_kind = control::kCpuDevice;
  std::string device_name = "";                           // as its maker calls it; empty: unknown
  std::optional<control::CardFacts> card = std::nullopt;  // of cards only
};
struct Register {
  NodeFacts facts;
  std::optional<Attachment> attachment;
};
struct Heartbeat {
  std::optional<control::CardReadings> card = std::nullopt;  // none: no card, or nothing new
  std::string leaving = "";  // why this worker is about to leave; empty: it stays
};

using ToCoordinator = std::variant<Register, Heartbeat, Preparing, Ready, StepReport, ShardStored,
                                   ShardFailed, Ended, Failed>;

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_MESSAGES_H_
