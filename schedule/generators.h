// One function for each schedule: the program of one stage. Registered in generate.cc.
#ifndef LONGHAUL_SCHEDULE_GENERATORS_H_
#define LONGHAUL_SCHEDULE_GENERATORS_H_

#include "schedule/program.h"

namespace longhaul::schedule {

// `shape` is valid and `stage` is one of its stages.
Program GpipeProgram(const Shape& shape, int stage);
Program OneFOneBProgram(const Shape& shape, int stage);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_GENERATORS_H_
