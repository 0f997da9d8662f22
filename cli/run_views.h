// How runs and their steps are shown.
#ifndef LONGHAUL_CLI_RUN_VIEWS_H_
#define LONGHAUL_CLI_RUN_VIEWS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cli/client.h"
#include "cli/output.h"
#include "longhaul/v1/admin.pb.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {

// One object of `run show --output json`, and of `run watch`.
nlohmann::ordered_json RunToJson(const v1::RunSummary& run);
nlohmann::ordered_json StepToJson(const std::string& run, const v1::WatchedStep& step);

// For people: one line a run; everything of one run.
void PrintRunTable(const v1::ListRunsResponse& runs);
void PrintRun(const v1::RunSummary& run);

// Follows a run to its rest: a progress bar, or one JSON object a step. Returns the exit code: done
// and stopped are good ends.
int FollowRun(Client& client, const std::string& run, uint64_t after_step, bool json);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_RUN_VIEWS_H_
