// What the core remembers: nodes and runs. Plain data; what is marked durable survives a restart.
#ifndef LONGHAUL_COORDINATOR_CORE_RECORDS_H_
#define LONGHAUL_COORDINATOR_CORE_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// What a worker says of itself when it registers.
struct NodeFacts {
  NodeProfile profile;        // profile.name is the identity
  uint64_t incarnation = 0;   // rises with every start of the worker's process
  std::string data_address;   // where other workers reach its exchange
  std::string version;        // of its build
};

// A worker's place in a run, as it claims it when it re-attaches.
struct Attachment {
  std::string run;
  Epoch epoch;
  int stage = 0;
  int64_t step = 0;  // completed
};

enum class NodeState { kConnected, kLost, kDraining, kDrained };

struct NodeRecord {
  NodeFacts facts;            // durable
  NodeState state = NodeState::kLost;  // durable: draining and drained
  uint64_t session = 0;       // of the control stream in force; 0: none
  absl::Time lease_until;     // silence beyond this loses the node
  std::string reason;         // why it is in this state, for people
  // Conflict of two processes with one name: the other's address and incarnation.
  std::string conflict;
};

enum class RunState { kPending, kRunning, kInterrupted, kStopped, kFailed, kDone };

// Where a pending or running run is; not durable except as RunState and epoch.
enum class RunPhase {
  kIdle,       // not pending and not running
  kWaiting,    // for nodes or for a plan
  kPlanning,   // the planner is at work
  kPreparing,  // assignments are out; stages build and load
  kTraining,
  kEnding,     // a stop, drain or the last step: stages are writing their last shards
  kAdopting,   // after a coordinator restart: workers have a lease to re-attach
};

struct StageProgress {
  bool ready = false;
  bool attached = false;  // its node is connected and claims this epoch
  bool ended = false;
  int64_t step = 0;       // last reported
};

struct RunRecord {
  run::RunSpec spec;                 // durable
  uint64_t sequence = 0;             // durable: order of creation
  RunState state = RunState::kPending;  // durable
  std::string reason;                // durable: why it is in this state and what to do
  RunPhase phase = RunPhase::kWaiting;
  Epoch epoch;                       // durable: of the newest plan
  std::optional<Plan> plan;          // durable: of `epoch`
  std::string token;                 // durable: data-plane token of `epoch`
  std::string numeric_class;         // durable: fixed by the first plan
  int stages_requested = 0;          // durable: overrides spec.stages when resumed with --stages
  int64_t start_step = 0;            // durable: the epoch starts after this step
  std::optional<checkpoint::Manifest> checkpoint;  // durable: the newest committed
  bool stop_requested = false;       // durable: the user asked; a drain re-plans instead
  std::vector<StageProgress> progress;
  // Shards reported for checkpoints not yet complete, by step.
  std::map<int64_t, std::map<int, checkpoint::Shard>> pending_shards;
  absl::Time phase_deadline;         // preparing, ending, adopting: when it is given up
};

// "pending", "running", ...
std::string RunStateName(RunState state);
std::string NodeStateName(NodeState state);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_RECORDS_H_
