// A second opinion on programs, for tests: runs them on symbols instead of tensors, with the real
// buffers' reuse, and compares every gradient and verdict with what synchronous training defines.
#ifndef LONGHAUL_SCHEDULE_TESTING_SYMBOLIC_RUN_H_
#define LONGHAUL_SCHEDULE_TESTING_SYMBOLIC_RUN_H_

#include <vector>

#include "schedule/program.h"

namespace longhaul::schedule {

// Whether `steps` steps of the programs end, leave no frame behind, and apply on every group
// exactly the gradients of all micro-batches, each replica's in order, after the verdict on all.
bool TrainsCorrectly(const std::vector<Program>& programs, const Shape& shape, int steps);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_TESTING_SYMBOLIC_RUN_H_
