// Everything the core can ask of its host. The host performs a step's actions in order; Persist
// actions are durable before any later action is performed.
#ifndef LONGHAUL_COORDINATOR_CORE_ACTIONS_H_
#define LONGHAUL_COORDINATOR_CORE_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "coordinator/core/events.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

struct PersistRun {
  std::string run;  // its record as it is after this step
};
struct PersistNode {
  std::string node;
};

// --- to workers, by session; a session that is gone swallows them ---

struct AcceptNode {
  uint64_t session = 0;
};
// The stream is closed after the reason is delivered. `retry`: the worker should try again.
struct RefuseNode {
  uint64_t session = 0;
  absl::Status reason;
  bool retry = true;
};
// One stage's part of the plan.
struct Assign {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int stage = 0;
  // The host adds spec, plan, token, start step, checkpoint and the peers' data addresses, which
  // are in the records.
};
struct StartTraining {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  std::vector<std::string> rendezvous = {};  // of each replica of the stage, where it has several
};
// To the first stage: stop after the step it is at, with a checkpoint.
struct RequestStop {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
};
// Drop everything of (run, epoch) and older; other runs are untouched.
struct AbortStage {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  std::string reason;
};
// The report, and those of earlier steps in this epoch, are durable; the worker forgets them.
struct AcknowledgeStep {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
  int64_t step = 0;
};
// The stage's end is durable; the worker is free.
struct ReleaseStage {
  uint64_t session = 0;
  std::string run;
  Epoch epoch;
};

// --- work whose answer comes back as an event ---

// Ask the planner; answered by PlanMade.
struct RequestPlan {
  std::string run;
  Epoch epoch;
  PlanRequest request;
};
// Commit a checkpoint whose shards are all stored; answered by ManifestCommitted.
struct CommitManifest {
  checkpoint::Manifest manifest;
};

// Remove what was committed of the run before a step, and stored shards that nothing names any
// more. Not answered.
struct PruneCheckpoints {
  std::string run;
  int64_t before_step = 0;
};

// These stored shards will not be part of any checkpoint: they may be removed. Not answered.
struct DropShards {
  std::string run;
  std::vector<std::string> sha256s;
};

// --- records and answers ---

struct RecordStep {
  control::StepReport report;  // idempotent by (run, step, stage)
};
struct Reply {
  uint64_t request = 0;
  absl::Status status;
  std::string text;  // for a person
};
// One line for the log: a decision and its reason. Emitted only when it changes.
struct Explain {
  std::string text;
  bool warning = false;
};

using Action =
    std::variant<PersistRun, PersistNode, AcceptNode, RefuseNode, Assign, StartTraining,
                 RequestStop, AbortStage, AcknowledgeStep, ReleaseStage, RequestPlan,
                 CommitManifest, PruneCheckpoints, DropShards, RecordStep, Reply, Explain>;

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_ACTIONS_H_
