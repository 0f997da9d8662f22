// What workers and the coordinator say to each other on the control stream, as plain data that both
// use. daemon/rpc converts it to and from Protobuf.
#ifndef LONGHAUL_CONTROL_MESSAGES_H_
#define LONGHAUL_CONTROL_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "model/graph.h"
#include "run/run_spec.h"

namespace longhaul::control {

// A `stage` below numbers the device groups of the plan, stage by stage and replica by replica:
// with one replica each it is the stage.

// --- to the coordinator ---

// A worker's place in a run, as it claims it when it re-attaches.
struct Attachment {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;  // completed
};
// A stage is not ready yet, but a part of the data that it fetches has come since it last said so.
struct Preparing {
  std::string run;
  Epoch epoch;
};
struct Ready {
  std::string run;
  Epoch epoch;
  std::string rendezvous = "";  // bytes for the stage's other replicas; empty: it has none
};
// A stage finished an optimizer step.
struct StepReport {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int stages = 0;
  int64_t step = 0;
  bool applied = true;
  double loss = 0;  // mean over the step's tokens; last stage only, each of its replicas
  double gradient_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;  // in the step
  double total_seconds = 0, compute_seconds = 0, wait_seconds = 0;
  bool has_validation = false;
  double validation_loss = 0;  // last stage only
};
// The shard is durable at the coordinator.
struct ShardStored {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
  checkpoint::Shard shard;
};
// A checkpoint's shard could not be stored; training goes on.
struct ShardFailed {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
  absl::Status status;
};
// The stage left the run at `step` as told, its last shard stored before.
struct Ended {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;
};
struct Failed {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;     // completed before it failed
  absl::Status status;  // names peer and micro-batch
  // SHA-256 of a shard of its checkpoint that nobody has intact; empty: it is not for that.
  std::string damaged_shard = "";
  // The numbers of the run are no numbers any more, so that it cannot go on: where they were lost,
  // lower is nearer to the cause (worker/host/divergence.h). Below 0: in a parameter.
  std::optional<int64_t> divergence = std::nullopt;
};

// --- to the worker ---

struct Accepted {
  absl::Duration lease;
  absl::Duration heartbeat_every;
};
// Not a member; the stream ends. `retry`: it may be different later.
struct Refused {
  absl::Status reason;
  bool retry = true;
};
// One device group of the plan, as every other sees it.
struct StagePeer {
  std::string node;
  std::string data_address;
  model::OpRange range;
  bool recompute = false;
  int replica = 0;        // 0 begins a stage; the others follow it
  int micro_batches = 0;  // of a step that it takes; 0: all of them
};
struct Assignment {
  std::string run;
  Epoch epoch;
  std::string token;
  run::RunSpec spec;
  int stage = 0;
  std::vector<StagePeer> stages;         // all groups; [stage] is this node
  std::vector<std::string> link_codecs;  // link s is between stages s and s+1
  std::string numeric_class;
  int64_t start_step = 0;                          // completed steps of the state to start from
  std::optional<checkpoint::Manifest> checkpoint;  // absent: initial weights
};
struct Start {
  std::string run;
  Epoch epoch;
  std::vector<std::string> rendezvous = {};  // of each replica of the receiver's stage; or empty
};
struct Stop {
  std::string run;
  Epoch epoch;
};
struct Abort {
  std::string run;
  Epoch epoch;
  std::string reason;
};
// Reports up to this step of the epoch are durable.
struct StepAcknowledged {
  std::string run;
  Epoch epoch;
  int64_t step = 0;
};
struct Released {
  std::string run;
  Epoch epoch;
};
using ToWorker =
    std::variant<Accepted, Refused, Assignment, Start, Stop, Abort, StepAcknowledged, Released>;

}  // namespace longhaul::control

#endif  // LONGHAUL_CONTROL_MESSAGES_H_
