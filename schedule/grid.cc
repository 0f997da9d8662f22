#include "schedule/grid.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "schedule/head_text.h"

namespace longhaul::schedule {
namespace {

constexpr size_t kShownBefore = 16;
constexpr size_t kShownAfter = 16;

std::string Marked(const std::string& text, bool failing) {
  return failing ? absl::StrCat(">>", text, "<<") : absl::StrCat("[", text, "]");
}

}  // namespace

std::string Grid(const std::vector<Program>& programs, absl::Span<const size_t> places,
                 int failing) {
  LH_CHECK(places.size() == programs.size(), places.size(), " places, ", programs.size(),
           " programs");
  std::string grid;
  for (size_t s = 0; s < programs.size(); ++s) {
    const std::vector<Instruction>& instructions = programs[s].instructions;
    const size_t place = std::min(places[s], instructions.size());
    const size_t begin = place > kShownBefore ? place - kShownBefore : 0;
    const size_t end = std::min(instructions.size(), place + kShownAfter);
    const bool fails = static_cast<int>(s) == failing;
    absl::StrAppend(&grid, HeadText(programs[s]), begin > 0 ? " ..." : "");
    for (size_t i = begin; i < end; ++i) {
      const std::string text = ToText(instructions[i]);
      absl::StrAppend(&grid, " ", i == place ? Marked(text, fails) : text);
    }
    if (place == instructions.size()) absl::StrAppend(&grid, " ", Marked("end", fails));
    absl::StrAppend(&grid, end < instructions.size() ? " ...\n" : "\n");
  }
  return grid;
}

}  // namespace longhaul::schedule
