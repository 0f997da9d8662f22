#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "run/run_fields.h"
#include "run/run_spec.h"

namespace longhaul::run {

absl::StatusOr<RunSpec> ParseRunFile(absl::string_view yaml, absl::string_view file_name) {
  RunSpec spec;
  LH_ASSIGN_OR_RETURN(const KeyLines lines, ReadYaml(yaml, file_name, FileFields(spec)));
  if (const std::optional<Problem> problem = FindProblem(spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat(lines.Where(problem->key), ": '", problem->key, "': ", problem->message));
  }
  return spec;
}

}  // namespace longhaul::run
