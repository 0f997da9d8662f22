// What the core remembers: nodes and runs. Plain data; what is marked durable survives a restart.
#ifndef LONGHAUL_COORDINATOR_CORE_RECORDS_H_
#define LONGHAUL_COORDINATOR_CORE_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "control/device.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/planner.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// What a worker says of itself when it registers.
struct NodeFacts {
  NodeProfile profile;       // profile.name is the identity
  uint64_t incarnation = 0;  // rises with every start of the worker's process
  std::string data_address;  // where other workers reach its exchange
  std::string version;       // of its build
  std::optional<control::CardFacts> card = std::nullopt;  // not durable; of nodes with one
};

enum class NodeState { kConnected, kLost, kDraining, kDrained };

struct NodeRecord {
  NodeFacts facts;                            // durable
  NodeState state = NodeState::kLost;         // durable: draining and drained
  std::string address;                        // of its newest control connection, for messages
  uint64_t session = 0;                       // of the control stream in force; 0: none
  absl::Time lease_until;                     // silence beyond this loses the node
  std::optional<control::CardReadings> card;  // the newest of this session
  std::string leaving =
      "";              // why the session is about to end, as its worker said; empty: it is not
  std::string reason;  // why it is in this state, for people
  // Without a session and in a run: when waiting for a re-attachment is given up.
  absl::Time reattach_until = absl::InfiniteFuture();
  // When a process took the name from another one that was alive.
  absl::Time taken_over_at = absl::InfinitePast();
  // Two processes use the name in turn: what to tell both, until `conflict_until`.
  std::string conflict;
  absl::Time conflict_until = absl::InfinitePast();
};

enum class RunState { kPending, kRunning, kInterrupted, kStopped, kFailed, kDone };

// Where a pending or running run is; not durable, follows from RunState after a restart.
enum class RunPhase {
  kIdle,       // not pending and not running, and no resume is being planned
  kWaiting,    // for nodes or for a plan
  kPlanning,   // the planner is at work
  kPreparing,  // assignments are out; stages build and load
  kTraining,
  kEnding,    // a stop, drain or the last step: stages are writing their last shards
  kAdopting,  // after a coordinator restart: workers have a lease to re-attach
};

struct StageProgress {
  bool ready = false;
  bool attached = false;  // its node is connected and claims this epoch
  bool ended = false;     // its last shard is stored, at `ended_step`
  int64_t ended_step = 0;
  int64_t failed_step = -1;  // newest step whose shard it could not store; -1: none
  int64_t step = 0;          // last reported
  std::string rendezvous =
      "";  // that it published for the stage's other replicas when it got ready
};

// A committed checkpoint besides the one that the run resumes from. One of a later step than that
// was left behind when the run went back.
struct OtherCheckpoint {
  checkpoint::Manifest manifest;
  std::string damage;  // the shard that nobody has intact; empty: none is known
  bool operator==(const OtherCheckpoint&) const = default;
};

// Who waits for the first plan of a start or resume, and what a resume asks for. That becomes the
// run's when the plan is accepted; until then the run's state and what is durable of it stay as
// they were, whatever the planner answers and whatever is committed meanwhile.
struct PlanWaiter {
  uint64_t request = 0;
  bool is_start = false;  // else a resume
  int stages = 0;         // 0: as before
  int replicas = 0;       // 0: as before
  // Of the checkpoint to go back to; 0: the initial weights; none: where it was.
  std::optional<int64_t> step = std::nullopt;
};

// A resume from a named step is answered once its checkpoint is loaded, or at `until`.
struct StepRequest {
  uint64_t request = 0;
  absl::Time until;
};

struct RunRecord {
  run::RunSpec spec;                    // durable
  uint64_t sequence = 0;                // durable: order of creation
  RunState state = RunState::kPending;  // durable
  std::string reason;                   // durable: why it is in this state and what to do
  RunPhase phase = RunPhase::kWaiting;
  Epoch epoch;               // durable: of the newest plan
  std::optional<Plan> plan;  // durable: of `epoch`
  std::string token;         // durable: data-plane token of `epoch`
  // Durable: of the nodes that took part so far, ascending. One, which the first plan fixes, unless
  // the run may mix them.
  std::vector<std::string> numeric_classes;
  int stages_requested = 0;    // durable: overrides spec.stages when resumed with --stages
  int replicas_requested = 0;  // durable: overrides spec.replicas when resumed with --replicas
  int64_t start_step = 0;      // durable: the epoch starts after this step
  // Durable: to resume from; the newest committed, unless the run went back to an older one.
  std::optional<checkpoint::Manifest> checkpoint;
  std::vector<OtherCheckpoint> other_checkpoints;  // durable: ascending by step, one a step
  bool stop_requested = false;     // durable: the user asked; a drain re-plans instead
  std::string checkpoint_problem;  // durable: why the newest checkpoint was not made; empty: none
  std::vector<StageProgress> progress;
  // Shards reported for checkpoints not yet complete, by step.
  std::map<int64_t, std::map<int, checkpoint::Shard>> pending_shards;
  // Complete, by step: the first is handed to the host to commit and not answered yet; one more may
  // wait for the answer.
  std::map<int64_t, checkpoint::Manifest> commits;
  absl::Time phase_deadline = absl::InfiniteFuture();  // preparing, ending, adopting: given up then

  // Stages have said that the run has diverged. It fails once all have, or one knows a parameter,
  // or the phase's deadline has passed.
  std::set<int> diverged;
  int64_t divergence = 0;        // the lowest order told
  std::string divergence_cause;  // as told with it

  // --- planning ---
  Epoch planning_epoch;  // named by the newest plan request
  // Nodes offered in the newest plan request, "name/incarnation": not asked again with equal ones.
  std::vector<std::string> planned_with;
  // The newest request asked whether the run fits once busy nodes are free; its plan is not used.
  bool planning_ahead = false;
  bool draining = false;  // a drain stopped it: a refused plan stops it for good
  std::optional<PlanWaiter> waiter;
  // Durable: a person named the step that the run goes on from, and no epoch has trained from it.
  bool step_is_named = false;
  std::optional<StepRequest> step_request;

  // --- the newest interruption ---
  absl::Time interrupted_at = absl::InfinitePast();
  std::string blamed_node;  // that its reason names; empty: none
};

// The class that every node of the run must have; empty: any may take part, or none is fixed yet.
std::string NumericClassOf(const RunRecord& run);
// For manifests: "cpu-x", "mixed: cpu-x, cuda-y".
std::string NumericClassText(const RunRecord& run);

// Completed by every stage in the epoch in force, as far as reported.
int64_t EpochStep(const RunRecord& run);

// "pending", "running", ...
std::string RunStateName(RunState state);
std::string NodeStateName(NodeState state);
// "waiting", "planning", ...
std::string RunPhaseName(RunPhase phase);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_RECORDS_H_
