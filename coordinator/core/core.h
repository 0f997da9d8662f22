// The coordinator's decisions as a function: state, event and time in, new state and actions out.
// No I/O, clock, thread, log or randomness.
//
// The host's whole loop:
//   state = Restore(stored records)
//   for each event from workers, people, the planner, the stores, and once a second a Tick:
//     actions = Step(state, event, now)
//     for each action in order: persist it, send it, or start the work that it names
#ifndef LONGHAUL_COORDINATOR_CORE_CORE_H_
#define LONGHAUL_COORDINATOR_CORE_CORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "coordinator/core/actions.h"
#include "coordinator/core/events.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

struct CoreOptions {
  absl::Duration lease = absl::Seconds(10);  // silence that loses a node
  // A broken control stream of a worker in a run is waited for this long before the run is
  // interrupted; a new process of the worker interrupts it at once.
  absl::Duration reattach_grace = absl::Seconds(3);
  // A lost node explains a failure of another stage that came at most this long before.
  absl::Duration blame_window = absl::Seconds(2);
  // To build stages and load shards, since a stage last said that its data set comes in.
  absl::Duration prepare_max = absl::Minutes(10);
  absl::Duration ending_max = absl::Minutes(10);  // to write the last shards
  int checkpoints_kept = 3;  // of each run; damaged and left behind ones are not counted
  uint32_t term = 1;         // of this coordinator's state
  // Tokens are HMAC-like: hex SHA-256 of (secret, run, epoch), so that the core stays a function.
  std::string token_secret;
  std::vector<LinkProfile> links;  // between sites, as configured; for the planner
};

struct State {
  CoreOptions options;
  std::map<std::string, NodeRecord> nodes;
  std::map<std::string, RunRecord> runs;
  uint64_t next_run_sequence = 1;
  // After a restart waiting runs are not planned on the first node that comes: until then they wait
  // for those that were there before. `joined_at`: when a node came last.
  absl::Time gathering_until = absl::InfinitePast();
  absl::Time joined_at = absl::InfinitePast();
  // The newest plan asked for by a start that was stopped meanwhile: later runs ask for newer ones.
  Epoch withdrawn;
};

// State after a start of the coordinator, from durable records. Runs that were running are adopted:
// every node of the plan has one lease from `now` to re-attach. `progress` of a run may hold the
// newest step that each stage is known to have completed in the run's epoch. A record that
// contradicts itself (running without a plan) becomes interrupted with a reason.
State Restore(CoreOptions options, std::vector<NodeRecord> nodes, std::vector<RunRecord> runs,
              absl::Time now);

// Applies one event. Never fails: what is wrong with an event becomes a reply, a refusal or
// nothing.
std::vector<Action> Step(State& state, const Event& event, absl::Time now);

// What an active run waits for: nodes without a connection, and until when they may come back;
// empty if there is none. `state` holds at least the nodes of its plan.
std::string DescribeWait(const State& state, const RunRecord& run);

// One line for each action, for traces and script tests: "assign n1 run first epoch 1.1 stage 0".
std::string ToText(const Action& action);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_CORE_H_
