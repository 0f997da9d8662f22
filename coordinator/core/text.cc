#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/core.h"

namespace longhaul::coordinator {
namespace {

std::string InRun(const std::string& run, const Epoch& epoch) {
  return absl::StrCat(" run ", run, " epoch ", ToString(epoch));
}

struct TextMaker {
  std::string operator()(const PersistRun& a) const { return absl::StrCat("persist run ", a.run); }
  std::string operator()(const PersistNode& a) const {
    return absl::StrCat("persist node ", a.node);
  }
  std::string operator()(const AcceptNode& a) const {
    return absl::StrCat("accept session ", a.session);
  }
  std::string operator()(const RefuseNode& a) const {
    return absl::StrCat("refuse session ", a.session,
                        a.retry ? " (retry): " : " (for good): ", a.reason.message());
  }
  std::string operator()(const Assign& a) const {
    return absl::StrCat("assign session ", a.session, InRun(a.run, a.epoch), " stage ", a.stage);
  }
  std::string operator()(const StartTraining& a) const {
    return absl::StrCat("start session ", a.session, InRun(a.run, a.epoch));
  }
  std::string operator()(const RequestStop& a) const {
    return absl::StrCat("stop session ", a.session, InRun(a.run, a.epoch));
  }
  std::string operator()(const AbortStage& a) const {
    return absl::StrCat("abort session ", a.session, InRun(a.run, a.epoch), ": ", a.reason);
  }
  std::string operator()(const AcknowledgeStep& a) const {
    return absl::StrCat("acknowledge session ", a.session, InRun(a.run, a.epoch), " step ", a.step);
  }
  std::string operator()(const ReleaseStage& a) const {
    return absl::StrCat("release session ", a.session, InRun(a.run, a.epoch));
  }
  std::string operator()(const RequestPlan& a) const {
    std::vector<std::string> nodes;
    for (const NodeProfile& node : a.request.nodes) nodes.push_back(node.name);
    return absl::StrCat("plan", InRun(a.run, a.epoch), " stages ", a.request.stages, " nodes ",
                        absl::StrJoin(nodes, ","));
  }
  std::string operator()(const CommitManifest& a) const {
    return absl::StrCat("commit", InRun(a.manifest.run, a.manifest.epoch), " step ",
                        a.manifest.step, " shards ", a.manifest.shards.size());
  }
  std::string operator()(const PruneCheckpoints& a) const {
    return absl::StrCat("prune run ", a.run, " before step ", a.before_step);
  }
  std::string operator()(const DropShards& a) const {
    return absl::StrCat("drop of run ", a.run, ": ", absl::StrJoin(a.sha256s, ", "));
  }
  std::string operator()(const RecordStep& a) const {
    return absl::StrCat("record", InRun(a.report.run, a.report.epoch), " stage ", a.report.stage,
                        " step ", a.report.step);
  }
  std::string operator()(const Reply& a) const {
    if (a.status.ok()) return absl::StrCat("reply ", a.request, ": ", a.text);
    return absl::StrCat("reply ", a.request, " ", absl::StatusCodeToString(a.status.code()), ": ",
                        a.status.message());
  }
  std::string operator()(const Explain& a) const {
    return absl::StrCat(a.warning ? "warn: " : "explain: ", a.text);
  }
};

}  // namespace

std::string ToText(const Action& action) { return std::visit(TextMaker{}, action); }

std::string RunStateName(RunState state) {
  switch (state) {
    case RunState::kPending:
      return "pending";
    case RunState::kRunning:
      return "running";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
    case RunState::kDone:
      return "done";
  }
  return absl::StrCat("state-", static_cast<int>(state));
}

std::string NodeStateName(NodeState state) {
  switch (state) {
    case NodeState::kConnected:
      return "connected";
    case NodeState::kLost:
      return "lost";
    case NodeState::kDraining:
      return "draining";
    case NodeState::kDrained:
      return "drained";
  }
  return absl::StrCat("state-", static_cast<int>(state));
}

std::string RunPhaseName(RunPhase phase) {
  switch (phase) {
    case RunPhase::kIdle:
      return "idle";
    case RunPhase::kWaiting:
      return "waiting";
    case RunPhase::kPlanning:
      return "planning";
    case RunPhase::kPreparing:
      return "preparing";
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kEnding:
      return "ending";
    case RunPhase::kAdopting:
      return "adopting";
  }
  return absl::StrCat("phase-", static_cast<int>(phase));
}

}  // namespace longhaul::coordinator
