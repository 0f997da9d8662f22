// How runs and their steps are shown.
#ifndef LONGHAUL_CLI_RUN_VIEWS_H_
#define LONGHAUL_CLI_RUN_VIEWS_H_

#include <string>

#include "longhaul/v1/admin.pb.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {

// Whether nothing more happens in this run by itself.
bool IsOver(const v1::RunSummary& run);

// "step 40", or `none` where there is no good checkpoint.
std::string CheckpointOf(const v1::RunSummary& run, const std::string& none);

// One object of `run ls --output json`; of `run show`, which has the stages, the plan and the run's
// file as well; and of `run watch`.
nlohmann::ordered_json RunLineToJson(const v1::RunSummary& run);
nlohmann::ordered_json RunToJson(const v1::RunSummary& run);
nlohmann::ordered_json StepToJson(const std::string& run, const v1::WatchedStep& step);

// For people: one line a run; everything of one run.
void PrintRunTable(const v1::ListRunsResponse& runs);
void PrintRun(const v1::RunSummary& run);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_RUN_VIEWS_H_
