// Everything that can happen to the core.
#ifndef LONGHAUL_COORDINATOR_CORE_EVENTS_H_
#define LONGHAUL_COORDINATOR_CORE_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "control/messages.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

// --- from workers; `session` names the control stream, unique for the life of the process ---

struct NodeConnected {
  uint64_t session = 0;
  std::string address;  // of the control connection, for messages
  NodeFacts facts;
  std::optional<control::Attachment> attachment;
};
struct NodeDisconnected {
  uint64_t session = 0;
  std::string reason;
};
struct NodeHeartbeat {
  uint64_t session = 0;
  std::optional<control::CardReadings> card = std::nullopt;  // none: nothing new
  std::string leaving = "";  // why the worker is about to leave; empty: it stays
};
// What a stage of a run said.
template <typename Message>
struct From {
  uint64_t session = 0;
  Message said;
};
using StagePreparing = From<control::Preparing>;
using StageReady = From<control::Ready>;
using StepReported = From<control::StepReport>;
using ShardStored = From<control::ShardStored>;
using ShardFailed = From<control::ShardFailed>;
using StageEnded = From<control::Ended>;
using StageFailed = From<control::Failed>;

// --- from people; each is answered by one Reply with the same `request` ---

struct StartRun {
  uint64_t request = 0;
  run::RunSpec spec;  // validated, its data set is in the store
  // Of step 0, committed, where the weights are given; none: they are drawn.
  std::optional<checkpoint::Manifest> checkpoint = std::nullopt;
};
struct StopRun {
  uint64_t request = 0;
  std::string run;
};
struct ResumeRun {
  uint64_t request = 0;
  std::string run;
  int stages = 0;  // 0: as before
  // Of the checkpoint to go back to; 0: the initial weights; none: where it was.
  std::optional<int64_t> step = std::nullopt;
  int replicas = 0;  // of every stage; 0: as before
};
struct DrainNode {
  uint64_t request = 0;
  std::string node;
};

// --- answers to actions ---

struct PlanMade {
  std::string run;
  Epoch epoch;  // that the request named; older ones are dropped
  absl::StatusOr<Plan> plan;
};
struct ManifestCommitted {
  std::string run;
  Epoch epoch;
  int64_t step = 0;
  absl::Status status;
};

// Time passed; sent at least every second.
struct Tick {};

using Event =
    std::variant<NodeConnected, NodeDisconnected, NodeHeartbeat, StagePreparing, StageReady,
                 StepReported, ShardStored, ShardFailed, StageEnded, StageFailed, StartRun, StopRun,
                 ResumeRun, DrainNode, PlanMade, ManifestCommitted, Tick>;

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_EVENTS_H_
