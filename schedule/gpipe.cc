#include "schedule/generators.h"
#include "schedule/step_parts.h"

namespace longhaul::schedule {

Program GpipeProgram(const Shape& shape, int stage) {
  Program program{.stage = stage, .slots = shape.micro_batches, .instructions = {}};
  for (int m = 0; m < shape.micro_batches; ++m) AppendForward(shape, m, program);
  for (int m = 0; m < shape.micro_batches; ++m) AppendBackward(shape, m, program);
  AppendStepTail(shape, program);
  return program;
}

}  // namespace longhaul::schedule
