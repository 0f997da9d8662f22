// Private to the core: what the functions of one Step share. Each event's function lives in the
// file of its idea; this header is the list of them.
#ifndef LONGHAUL_COORDINATOR_CORE_TURN_H_
#define LONGHAUL_COORDINATOR_CORE_TURN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/core.h"

namespace longhaul::coordinator {

// One call of Step.
struct Turn {
  State& state;
  const absl::Time now;
  std::vector<Action> actions;

  void Do(Action action) { actions.push_back(std::move(action)); }
  void Explain(std::string text) { Do(coordinator::Explain{std::move(text), false}); }
  void Warn(std::string text) { Do(coordinator::Explain{std::move(text), true}); }
  void Answer(uint64_t request, std::string text) {
    Do(Reply{request, absl::OkStatus(), std::move(text)});
  }
  void Refuse(uint64_t request, absl::Status status) { Do(Reply{request, std::move(status), ""}); }
};

// --- lookup.cc ---

NodeRecord* FindNode(State& state, const std::string& name);
// The node whose control stream in force is `session`.
NodeRecord* FindSession(State& state, uint64_t session);
RunRecord* FindRun(State& state, const std::string& name);
// Runs by order of creation.
std::vector<RunRecord*> RunsInOrder(State& state);

// Whether the run holds its nodes: preparing, training, ending or adopting.
bool IsActive(const RunRecord& run);
// A node's stage in an active run.
struct Place {
  RunRecord* run = nullptr;  // null: none
  int stage = 0;
  StageProgress& progress() const { return run->progress[static_cast<size_t>(stage)]; }
};
Place FindPlace(State& state, const std::string& node);
// The stage that the session's node holds in (run, epoch); none if that is not in force.
Place FindPlace(State& state, uint64_t session, const std::string& run, const Epoch& epoch);
// Control stream of the node of a stage; 0: none.
uint64_t SessionOf(const State& state, const RunRecord& run, int stage);
// Device groups of its plan. The core numbers them as `stage`: with one replica each they are the
// stages.
int GroupCount(const RunRecord& run);
// Draining or drained.
bool IsDrained(const NodeRecord& node);
bool HasDrainingNode(const State& state, const RunRecord& run);
// Nodes of the run's plan that are draining or drained: "node n2" or "nodes n1, n2".
std::string NameDrained(const State& state, const RunRecord& run);
// "node n2 (stage 1)", "node n3 (stage 1 replica 1)".
std::string NameStage(const RunRecord& run, int stage);
// "; resume with: longhaul run resume first", or what else helps.
std::string ResumeHint(const RunRecord& run);

// Nodes that a run may use now; with `busy_too` also those that hold a stage of another run.
std::vector<const NodeRecord*> UsableNodes(State& state, bool busy_too);

// Sets state, phase and reason; persists and explains what changed.
void ChangeRun(Turn& turn, RunRecord& run, RunState state, RunPhase phase, std::string reason);

// --- membership.cc ---
void OnNodeConnected(Turn& turn, const NodeConnected& event);
void OnNodeDisconnected(Turn& turn, const NodeDisconnected& event);
void OnNodeHeartbeat(Turn& turn, const NodeHeartbeat& event);
// Any message is a sign of life.
void RenewLease(Turn& turn, uint64_t session);
void ExpireLeases(Turn& turn);
// Nodes whose drain has nothing left to wait for.
void FinishDrains(Turn& turn);
// The node has no control stream any more. Its run, if any, is not interrupted yet.
void DropSession(Turn& turn, NodeRecord& node, const std::string& reason);

// --- takeover.cc ---
enum class Admission { kRefused, kSameProcess, kNewProcess };
// Decides who of two claimants has the name; refuses the others.
Admission Admit(Turn& turn, NodeRecord& node, const NodeConnected& event);

// --- attachment.cc ---
// What a node that was just accepted is told about the run that it holds a stage of.
void Attach(Turn& turn, NodeRecord& node, const std::optional<control::Attachment>& attachment,
            bool new_process);

// --- planning.cc ---
// Asks for a plan: for the free nodes, or, where there is none, whether all could do it once free.
void BeginPlanning(Turn& turn, RunRecord& run);
void OnPlanMade(Turn& turn, const PlanMade& event);
// What the waiter asks for becomes the run's, as its plan is accepted. Nothing without a waiter.
void AcceptRequest(Turn& turn, RunRecord& run);
// Asks again for pending runs when other nodes than before are free.
void PlanWaitingRuns(Turn& turn);
// --- refusal.cc ---
// Refuses who waits for the run's plan, and changes nothing else; a run that was to be started is
// gone afterwards.
void RefuseRequest(Turn& turn, RunRecord& run, const absl::Status& refusal);
// The planner's answer to a run is no. The run may be gone afterwards.
void RefusePlan(Turn& turn, RunRecord& run, const absl::Status& refusal);

// --- training.cc ---
// Puts a plan into force and hands out its stages.
void BeginEpoch(Turn& turn, RunRecord& run, const Plan& plan);
// A resume from a named step, if one waits for its checkpoint, is carried out.
void AnswerStepRequest(Turn& turn, RunRecord& run);
void SendAssignment(Turn& turn, const RunRecord& run, int stage);
// Tells the stage to train, and where the other replicas are; nothing if its node is not connected.
void SendStart(Turn& turn, const RunRecord& run, int stage);
void OnStagePreparing(Turn& turn, const StagePreparing& event);
void OnStageReady(Turn& turn, const StageReady& event);
void OnStepReported(Turn& turn, const StepReported& event);
// From adopting to training or ending, once every stage is attached.
void AdoptIfComplete(Turn& turn, RunRecord& run);

// --- checkpoints.cc ---
void OnShardStored(Turn& turn, const ShardStored& event);
void OnShardFailed(Turn& turn, const ShardFailed& event);
void OnManifestCommitted(Turn& turn, const ManifestCommitted& event);
// Of the checkpoints of the run in the making, those that are not whole become none any more.
void DropPendingShards(Turn& turn, RunRecord& run);
// Nor those that are whole but not committed.
void DropUnfinished(Turn& turn, RunRecord& run);

// --- history.cc ---
// The newest checkpoint from now on; the one before becomes another.
void AddCheckpoint(RunRecord& run, checkpoint::Manifest manifest);
// Whether one of its committed checkpoints has the shard.
bool IsNamed(const RunRecord& run, const std::string& sha256);
// Forgets and removes those that are too old to be kept.
void PruneHistory(Turn& turn, RunRecord& run);
// Whether there is a checkpoint of the step, damaged or not; 0: the initial weights. NotFound lists
// the good ones.
absl::Status CheckStep(const RunRecord& run, int64_t step);
// Goes back (or forth) to the checkpoint of a step that CheckStep has found.
void ChooseCheckpoint(Turn& turn, RunRecord& run, int64_t step);
// Its checkpoints that are not older than the one to resume from are known to be damaged: which,
// and what is done about it; empty: none.
std::string DamageNote(const RunRecord& run);
// "step 10" or "the beginning".
std::string ResumePoint(const RunRecord& run);
// The checkpoint that it was at is damaged and there is no older one: a person has to say where it
// goes on.
bool HasLostItsCheckpoint(const RunRecord& run);
// Whether the stage failed for a damaged shard of its checkpoint: the run then goes back to an
// older one (never forth to one that was left behind), or is interrupted for want of any or because
// a person had named this one, or, where a stop was asked for, stops.
bool FallBack(Turn& turn, const Place& place, const StageFailed& event);

// --- ending.cc ---
// Tells the first stage to stop after its step.
void BeginEnding(Turn& turn, RunRecord& run, std::string reason);
void SendStop(Turn& turn, const RunRecord& run);
void OnStageEnded(Turn& turn, const StageEnded& event);
// Leaves the run once all stages have ended and their checkpoint is committed.
void FinishIfComplete(Turn& turn, RunRecord& run);
// After a commit: a run that is not active is done once the checkpoint of its last step is there. A
// resume that is being planned is refused as that of any done run.
void FinishIfNothingIsLeft(Turn& turn, RunRecord& run);

// --- interruption.cc ---
// The run stops here; its stages are told to drop everything. `node` is to blame (may be empty).
void Interrupt(Turn& turn, RunRecord& run, const std::string& cause, const std::string& node);
// The same because the node of a stage is gone, for the reason in its record.
void InterruptForLostNode(Turn& turn, RunRecord& run, int stage);
void OnStageFailed(Turn& turn, const StageFailed& event);
// A node was lost just after others failed for want of it: name it instead.
void BlameLostNode(Turn& turn, const NodeRecord& node);
void ExpirePhases(Turn& turn);

// --- people.cc ---
void OnStartRun(Turn& turn, const StartRun& event);
void OnStopRun(Turn& turn, const StopRun& event);
void OnResumeRun(Turn& turn, const ResumeRun& event);
// --- drain.cc ---
void OnDrainNode(Turn& turn, const DrainNode& event);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_TURN_H_
