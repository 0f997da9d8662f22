// For tests: plain-text scripts of events, and the actions that they lead to.
//
//   # two workers join and a run starts
//   connect n1 session=1 incarnation=5
//   start request=1 run=first
//   ----
//   (one line for each action)
//
// Blocks are separated by blank lines. The commands are listed in script_runner.cc.
#ifndef LONGHAUL_COORDINATOR_CORE_TESTING_SCRIPT_RUNNER_H_
#define LONGHAUL_COORDINATOR_CORE_TESTING_SCRIPT_RUNNER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/core.h"

namespace longhaul::coordinator {

// Only what a journal keeps of a record.
NodeRecord Durable(const NodeRecord& record);
RunRecord Durable(const RunRecord& record);

// Plays the host: keeps the time, the journal and the state.
class ScriptRunner {
 public:
  ScriptRunner();

  // Runs one command line; its actions as text lines. A command that is not understood gives one
  // line that begins with "error".
  std::vector<std::string> Run(const std::string& line);

 private:
  // Time passes with heartbeats from every session in force.
  std::vector<std::string> Idle(const std::string& duration);
  std::vector<std::string> Apply(const Event& event);
  std::vector<std::string> Restart();
  std::vector<std::string> Show() const;

  absl::Time now_ = absl::UnixEpoch();
  State state_;
  std::map<std::string, NodeRecord> stored_nodes_;
  std::map<std::string, RunRecord> stored_runs_;
  // Newest step that was recorded, by run, epoch and stage.
  std::map<std::string, std::map<Epoch, std::map<int, int64_t>>> recorded_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_CORE_TESTING_SCRIPT_RUNNER_H_
