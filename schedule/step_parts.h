// The parts that every training schedule's programs are made of.
#ifndef LONGHAUL_SCHEDULE_STEP_PARTS_H_
#define LONGHAUL_SCHEDULE_STEP_PARTS_H_

#include "schedule/program.h"

namespace longhaul::schedule {

// Each appends to `program`, whose stage and replica say what applies.

// Forward of micro-batch m: its receive right before it, its send right after.
void AppendForward(const Shape& shape, int m, Program& program);
// Backward of micro-batch m, likewise.
void AppendBackward(const Shape& shape, int m, Program& program);

// What every group does once a step after its last Backward: the sum over the stage's replicas, the
// tied sum, the norm up the pipeline, the verdict down it, the optimizer. Two orders hide latency:
// the last stage sends its norms before it waits for the tied sum, which the first stage counts in
// the norm, so that the two round trips overlap; and each stage forwards the verdict before it
// applies it.
void AppendStepTail(const Shape& shape, Program& program);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_STEP_PARTS_H_
