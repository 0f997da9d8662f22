#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {

NodeRecord* FindNode(State& state, const std::string& name) {
  const auto found = state.nodes.find(name);
  return found == state.nodes.end() ? nullptr : &found->second;
}

NodeRecord* FindSession(State& state, uint64_t session) {
  if (session == 0) return nullptr;
  for (auto& [name, node] : state.nodes) {
    if (node.session == session) return &node;
  }
  return nullptr;
}

RunRecord* FindRun(State& state, const std::string& name) {
  const auto found = state.runs.find(name);
  return found == state.runs.end() ? nullptr : &found->second;
}

std::vector<RunRecord*> RunsInOrder(State& state) {
  std::vector<RunRecord*> runs;
  for (auto& [name, run] : state.runs) runs.push_back(&run);
  std::sort(runs.begin(), runs.end(),
            [](const RunRecord* a, const RunRecord* b) { return a->sequence < b->sequence; });
  return runs;
}

bool IsActive(const RunRecord& run) {
  switch (run.phase) {
    case RunPhase::kPreparing:
    case RunPhase::kTraining:
    case RunPhase::kEnding:
    case RunPhase::kAdopting:
      return true;
    case RunPhase::kIdle:
    case RunPhase::kWaiting:
    case RunPhase::kPlanning:
      return false;
  }
  LH_CHECK(false, "run phase ", static_cast<int>(run.phase));
}

Place FindPlace(State& state, const std::string& node) {
  for (auto& [name, run] : state.runs) {
    if (!IsActive(run)) continue;
    for (int stage = 0; stage < GroupCount(run); ++stage) {
      if (run.plan->stages[static_cast<size_t>(stage)].node == node) return {&run, stage};
    }
  }
  return {};
}

Place FindPlace(State& state, uint64_t session, const std::string& run, const Epoch& epoch) {
  const NodeRecord* node = FindSession(state, session);
  if (node == nullptr) return {};
  const Place place = FindPlace(state, node->facts.profile.name);
  if (place.run == nullptr || place.run->spec.name != run || place.run->epoch != epoch) return {};
  return place;
}

uint64_t SessionOf(const State& state, const RunRecord& run, int stage) {
  const auto found = state.nodes.find(run.plan->stages[static_cast<size_t>(stage)].node);
  return found == state.nodes.end() ? 0 : found->second.session;
}

int GroupCount(const RunRecord& run) {
  return run.plan.has_value() ? static_cast<int>(run.plan->stages.size()) : 0;
}

bool IsDrained(const NodeRecord& node) {
  return node.state == NodeState::kDraining || node.state == NodeState::kDrained;
}

bool HasDrainingNode(const State& state, const RunRecord& run) {
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    const auto node = state.nodes.find(run.plan->stages[static_cast<size_t>(stage)].node);
    if (node != state.nodes.end() && node->second.state == NodeState::kDraining) return true;
  }
  return false;
}

std::string NameDrained(const State& state, const RunRecord& run) {
  std::vector<std::string> names;
  for (int stage = 0; stage < GroupCount(run); ++stage) {
    const auto node = state.nodes.find(run.plan->stages[static_cast<size_t>(stage)].node);
    if (node != state.nodes.end() && IsDrained(node->second)) names.push_back(node->first);
  }
  return absl::StrCat(names.size() == 1 ? "node " : "nodes ", absl::StrJoin(names, ", "));
}

std::string DescribeWait(const State& state, const RunRecord& run) {
  std::vector<std::string> names;
  absl::Time until = absl::InfinitePast();
  for (int stage = 0; IsActive(run) && stage < GroupCount(run); ++stage) {
    const auto node = state.nodes.find(run.plan->stages[static_cast<size_t>(stage)].node);
    if (node == state.nodes.end() || node->second.session != 0) continue;
    const absl::Time deadline =
        std::min(node->second.reattach_until,
                 run.phase == RunPhase::kAdopting ? run.phase_deadline : absl::InfiniteFuture());
    if (run.progress[static_cast<size_t>(stage)].ended || deadline == absl::InfiniteFuture()) {
      continue;
    }
    names.push_back(NameStage(run, stage));
    until = std::max(until, deadline);
  }
  if (names.empty()) return "";
  return absl::StrCat("waits until ", absl::FormatTime("%H:%M:%S UTC", until, absl::UTCTimeZone()),
                      " for ", absl::StrJoin(names, ", "), " to come back");
}

std::string NumericClassOf(const RunRecord& run) {
  if (run.spec.any_numeric_class || run.numeric_classes.empty()) return "";
  return run.numeric_classes.front();
}

std::string NumericClassText(const RunRecord& run) {
  return absl::StrCat(run.numeric_classes.size() > 1 ? "mixed: " : "",
                      absl::StrJoin(run.numeric_classes, ", "));
}

int64_t EpochStep(const RunRecord& run) {
  int64_t completed = std::numeric_limits<int64_t>::max();
  for (const StageProgress& progress : run.progress) completed = std::min(completed, progress.step);
  return run.progress.empty() ? run.start_step : std::max(run.start_step, completed);
}

std::string NameStage(const RunRecord& run, int stage) {
  return absl::StrCat("node ", run.plan->stages[static_cast<size_t>(stage)].node, " (",
                      run.plan->NameOf(stage), ")");
}

std::string ResumeHint(const RunRecord& run) {
  if (!HasLostItsCheckpoint(run)) {
    return absl::StrCat("; resume with: longhaul run resume ", run.spec.name);
  }
  const OtherCheckpoint& newest = run.other_checkpoints.back();
  const bool is_drawn = run.spec.from.empty();  // else nobody has the weights of step 0 any more
  return absl::StrCat(
      "; ",
      newest.damage.empty() ? "go on from a checkpoint that was left behind"
                            : "put the shard's file back at the coordinator or the node and resume",
      " with: longhaul run resume ", run.spec.name, " --step ", newest.manifest.step,
      is_drawn ? ", or train from the beginning with --step 0" : "");
}

std::vector<const NodeRecord*> UsableNodes(State& state, bool busy_too) {
  std::vector<const NodeRecord*> nodes;
  for (const auto& [name, node] : state.nodes) {
    if (node.state != NodeState::kConnected || node.session == 0) continue;
    if (!node.leaving.empty()) continue;
    if (!busy_too && FindPlace(state, name).run != nullptr) continue;
    nodes.push_back(&node);
  }
  return nodes;
}

void ChangeRun(Turn& turn, RunRecord& run, RunState state, RunPhase phase, std::string reason) {
  const bool state_changed = run.state != state;
  const bool reason_changed = run.reason != reason;
  run.state = state;
  run.phase = phase;
  run.reason = std::move(reason);
  if (!IsActive(run)) run.phase_deadline = absl::InfiniteFuture();
  if (run.step_request.has_value() && state != RunState::kRunning && state != RunState::kPending) {
    turn.Refuse(run.step_request->request, absl::FailedPreconditionError(run.reason));
    run.step_request.reset();
  }
  if (!state_changed && !reason_changed) return;
  turn.Do(PersistRun{run.spec.name});
  turn.Do(
      Explain{absl::StrCat("run ", run.spec.name, " is ", RunStateName(state), ": ", run.reason),
              state == RunState::kInterrupted || state == RunState::kFailed});
}

}  // namespace longhaul::coordinator
