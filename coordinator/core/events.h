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
#include "checkpoint/manifest.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

// --- from workers; `session` names the control stream, unique for the life of the process ---

struct NodeConnected {
  uint64_t session = 0;
  std::string address;  // of the control connection, for messages
  NodeFacts facts;
  std::optional<Attachment> attachment;
};
struct NodeDisconnected {
  uint64_t session = 0;
  std::string reason;
};
struct NodeHeartbeat {
  uint64_t session = 0;
};
struct StageReady {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
};

// A stage finished an optimizer step.
struct StepReport {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int stages = 0;
  int64_t step = 0;
  bool applied = true;
  double loss = 0;  // mean over the step's tokens; last stage only
  double gradient_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;  // in the step
  double total_seconds = 0, compute_seconds = 0, wait_seconds = 0;
  bool has_validation = false;
  double validation_loss = 0;  // last stage only
};
struct StepReported {
  uint64_t session = 0;
  StepReport report;
};
// The shard is durable at the coordinator (the host checked it).
struct ShardStored {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
  checkpoint::Shard shard;
};
// A checkpoint's shard could not be stored (a full disk, say); training goes on, the run shows why.
struct ShardFailed {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
  absl::Status status;
};
// The stage left the run at `step` as told, its last shard stored before.
struct StageEnded {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
};
struct StageFailed {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;     // completed before it failed
  absl::Status status;  // names peer and micro-batch
  // SHA-256 of a shard of its checkpoint that nobody has intact; empty: it is not for that.
  std::string damaged_shard = "";
};

// --- from people; each is answered by one Reply with the same `request` ---

struct StartRun {
  uint64_t request = 0;
  run::RunSpec spec;  // validated, its data set is in the store
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

using Event = std::variant<NodeConnected, NodeDisconnected, NodeHeartbeat, StageReady, StepReported,
                           ShardStored, ShardFailed, StageEnded, StageFailed, StartRun, StopRun,
                           ResumeRun, DrainNode, PlanMade, ManifestCommitted, Tick>;

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_EVENTS_H_
