// For tests: programs written by hand.
#ifndef LONGHAUL_SCHEDULE_TESTING_PARSE_PROGRAM_H_
#define LONGHAUL_SCHEDULE_TESTING_PARSE_PROGRAM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// The program whose ToText this is. Every instruction gets the stage of its program.
// InvalidArgument shows what is wrong; hostile text is safe, and what is kept is never longer than
// the text.
absl::StatusOr<Program> ParseProgram(absl::string_view text);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_TESTING_PARSE_PROGRAM_H_
