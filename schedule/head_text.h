// The beginning of a program's text form, which error messages show too.
#ifndef LONGHAUL_SCHEDULE_HEAD_TEXT_H_
#define LONGHAUL_SCHEDULE_HEAD_TEXT_H_

#include <string>

#include "schedule/program.h"

namespace longhaul::schedule {

// "stage 1 slots 4:"
std::string HeadText(const Program& program);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_HEAD_TEXT_H_
