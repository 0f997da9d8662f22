#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/generators.h"
#include "schedule/program.h"

namespace longhaul::schedule {
namespace {

struct Schedule {
  absl::string_view name;
  Program (*program)(const Shape& shape, int stage);
};

constexpr Schedule kSchedules[] = {
    {"gpipe", GpipeProgram},
    {"1f1b", OneFOneBProgram},
};

}  // namespace

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const Schedule& schedule : kSchedules) names.emplace_back(schedule.name);
  return names;
}

absl::StatusOr<std::vector<Program>> Generate(absl::string_view schedule, const Shape& shape) {
  if (shape.stages < 1 || shape.micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule needs at least one stage and one "
                     "micro-batch, not ",
                     shape.stages, " and ", shape.micro_batches));
  }
  for (const Schedule& entry : kSchedules) {
    if (entry.name != schedule) continue;
    std::vector<Program> programs;
    for (int stage = 0; stage < shape.stages; ++stage) {
      programs.push_back(entry.program(shape, stage));
    }
    return programs;
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule '", schedule, "' is not known; use ",
                                                 absl::StrJoin(ScheduleNames(), " or ")));
}

}  // namespace longhaul::schedule
