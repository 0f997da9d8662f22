#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/generators.h"
#include "schedule/groups.h"
#include "schedule/program.h"

namespace longhaul::schedule {
namespace {

struct Schedule {
  absl::string_view name;
  Program (*program)(const Shape& shape, const Groups& groups, int group);
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
  LH_RETURN_IF_ERROR(CheckShape(shape));
  for (const Schedule& entry : kSchedules) {
    if (entry.name != schedule) continue;
    const Groups groups(shape);
    std::vector<Program> programs;
    for (int group = 0; group < groups.count(); ++group) {
      programs.push_back(entry.program(shape, groups, group));
    }
    return programs;
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule '", schedule, "' is not known; use ",
                                                 absl::StrJoin(ScheduleNames(), " or ")));
}

}  // namespace longhaul::schedule
