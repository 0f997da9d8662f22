#include "schedule/generators.h"
#include "schedule/step_parts.h"

namespace longhaul::schedule {

Program GpipeProgram(const Shape& shape, const Groups& groups, int group) {
  const std::vector<int>& own = groups.MicroBatches(group);
  Program program{.stage = groups.stage(group),
                  .replica = groups.replica(group),
                  .slots = static_cast<int>(own.size()),
                  .instructions = {}};
  for (const int m : own) AppendForward(shape, m, program);
  for (const int m : own) AppendBackward(shape, m, program);
  AppendStepTail(shape, program);
  return program;
}

}  // namespace longhaul::schedule
