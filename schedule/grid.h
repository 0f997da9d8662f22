// A picture of all programs with each group's place marked, for error messages.
#ifndef LONGHAUL_SCHEDULE_GRID_H_
#define LONGHAUL_SCHEDULE_GRID_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// One line for each group. places[g] is the index of the instruction that group g has come to, its
// size if it is at its end; it is shown as "[B3]", or ">>B3<<" for group `failing`. Long programs
// are cut to the neighbourhood of the place.
std::string Grid(const std::vector<Program>& programs, absl::Span<const size_t> places,
                 int failing);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_GRID_H_
