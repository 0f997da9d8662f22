// Text from other machines, made safe for a terminal and for a log.
#ifndef LONGHAUL_BASE_TEXT_ESCAPE_H_
#define LONGHAUL_BASE_TEXT_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace longhaul {

enum class Newlines { kKept, kEscaped };

// Control characters (C0, DEL, and C1, which command a terminal as ESC sequences do) and bytes that
// are not UTF-8 become \xNN, a newline becomes \n where it is not kept. All else stays, backslashes
// too: the result is for reading, not for reversing.
std::string EscapeControls(absl::string_view text, Newlines newlines);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_TEXT_ESCAPE_H_
