// For tests: the evaluation programs of all groups; each group makes its own.
#ifndef LONGHAUL_SCHEDULE_TESTING_EVALUATION_PROGRAMS_H_
#define LONGHAUL_SCHEDULE_TESTING_EVALUATION_PROGRAMS_H_

#include <vector>

#include "schedule/groups.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// `shape` is EvaluationShape's.
inline std::vector<Program> GenerateEvaluation(const Shape& shape) {
  std::vector<Program> programs;
  const Groups groups(shape);
  for (int group = 0; group < groups.count(); ++group) {
    programs.push_back(GenerateEvaluationOf(shape, groups.stage(group), groups.replica(group)));
  }
  return programs;
}

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_TESTING_EVALUATION_PROGRAMS_H_
