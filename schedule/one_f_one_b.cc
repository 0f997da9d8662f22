#include <algorithm>

#include "schedule/generators.h"
#include "schedule/step_parts.h"

namespace longhaul::schedule {

Program OneFOneBProgram(const Shape& shape, int stage) {
  const int warm_up = std::min(shape.stages - stage, shape.micro_batches);
  Program program{.stage = stage, .slots = warm_up, .instructions = {}};
  for (int m = 0; m < warm_up; ++m) AppendForward(shape, m, program);
  for (int m = 0; m < shape.micro_batches; ++m) {
    AppendBackward(shape, m, program);
    if (m < shape.micro_batches - warm_up) AppendForward(shape, m + warm_up, program);
  }
  AppendStepTail(shape, program);
  return program;
}

}  // namespace longhaul::schedule
