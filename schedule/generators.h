// One function for each schedule: the program of one device group. Registered in generate.cc.
#ifndef LONGHAUL_SCHEDULE_GENERATORS_H_
#define LONGHAUL_SCHEDULE_GENERATORS_H_

#include "schedule/groups.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// `shape` is valid, `groups` are its, and `group` is one of them.
Program GpipeProgram(const Shape& shape, const Groups& groups, int group);
Program OneFOneBProgram(const Shape& shape, const Groups& groups, int group);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_GENERATORS_H_
