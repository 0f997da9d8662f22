#include "daemon/coordinator_figures.h"

#include <map>
#include <string>

namespace longhaul::daemon {
namespace {

using coordinator::NodeState;
using coordinator::RunState;

void AddNodes(const coordinator::State& state, std::vector<Figure>& figures) {
  // Every state is listed, so that a figure that falls to nothing is 0 and not absent.
  std::map<std::string, double> nodes;
  for (const NodeState each :
       {NodeState::kConnected, NodeState::kLost, NodeState::kDraining, NodeState::kDrained}) {
    nodes[coordinator::NodeStateName(each)] = 0;
  }
  for (const auto& [name, node] : state.nodes) ++nodes[coordinator::NodeStateName(node.state)];
  for (const auto& [name, count] : nodes) {
    figures.push_back({"longhaul_nodes", "Nodes by state", false, {{"state", name}}, count});
  }
}

void AddRuns(const coordinator::State& state, coordinator::MetricsStore& metrics,
             std::vector<Figure>& figures) {
  std::map<std::string, double> runs;
  for (const RunState each : {RunState::kPending, RunState::kRunning, RunState::kInterrupted,
                              RunState::kStopped, RunState::kFailed, RunState::kDone}) {
    runs[coordinator::RunStateName(each)] = 0;
  }
  for (const auto& [name, run] : state.runs) {
    ++runs[coordinator::RunStateName(run.state)];
    const auto known = metrics.Figures(name, coordinator::EpochStep(run));
    if (!known.ok()) continue;
    const std::vector<std::pair<std::string, std::string>> labels = {{"run", name}};
    figures.push_back({"longhaul_run_step", "Newest step that every stage has completed", false,
                       labels, static_cast<double>(known->step)});
    figures.push_back({"longhaul_run_loss", "Loss of the newest step", false, labels, known->loss});
    figures.push_back({"longhaul_run_tokens_per_second", "Training rate over the newest steps",
                       false, labels, known->tokens_per_second});
    figures.push_back({"longhaul_run_skipped_steps",
                       "Steps whose gradient was not finite, so that they were not applied", false,
                       labels, static_cast<double>(known->skipped_steps)});
  }
  for (const auto& [name, count] : runs) {
    figures.push_back({"longhaul_runs", "Runs by state", false, {{"state", name}}, count});
  }
}

}  // namespace

std::vector<Figure> CoordinatorFigures(coordinator::CoordinatorHost& host,
                                       const MembershipServer& membership,
                                       const SessionTable& sessions) {
  std::vector<Figure> figures;
  const coordinator::State state = host.Snapshot();
  AddNodes(state, figures);
  AddRuns(state, host.metrics(), figures);
  figures.push_back({"longhaul_control_streams_refused_total",
                     "Control streams refused before they became sessions",
                     true,
                     {},
                     static_cast<double>(membership.refused())});
  figures.push_back({"longhaul_control_streams_overflowed_total",
                     "Control streams ended because their worker did not read",
                     true,
                     {},
                     static_cast<double>(sessions.overflows())});
  figures.push_back({"longhaul_journal_healthy",
                     "1 while the journal can be written",
                     false,
                     {},
                     host.health().ok() ? 1.0 : 0.0});
  return figures;
}

}  // namespace longhaul::daemon
