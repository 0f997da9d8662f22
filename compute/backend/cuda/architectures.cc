#include "compute/backend/cuda/architectures.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace longhaul::compute {
namespace {

struct Architecture {
  std::string name;       // as given, without its suffix
  int number = 0;         // 90 of 9.0; 0: not a number
  bool is_alone = false;  // "90a"
  bool has_machine_code = true, has_ptx = true;
};

Architecture Parse(absl::string_view word) {
  Architecture architecture;
  if (absl::ConsumeSuffix(&word, "-real")) architecture.has_ptx = false;
  if (absl::ConsumeSuffix(&word, "-virtual")) architecture.has_machine_code = false;
  architecture.name = std::string(word);
  architecture.is_alone = absl::ConsumeSuffix(&word, "a");
  if (!absl::SimpleAtoi(word, &architecture.number)) architecture.number = 0;
  return architecture;
}

std::vector<Architecture> ParseAll(absl::string_view built) {
  std::vector<Architecture> all;
  for (const absl::string_view word : absl::StrSplit(built, ',', absl::SkipWhitespace())) {
    all.push_back(Parse(word));
  }
  return all;
}

}  // namespace

bool HasCodeFor(absl::string_view built, int major, int minor) {
  const int card = 10 * major + minor;
  for (const Architecture& have : ParseAll(built)) {
    if (have.number == 0 || have.number == card) return true;
    if (have.is_alone || have.number > card) continue;
    if (have.has_ptx || (have.has_machine_code && have.number / 10 == major)) return true;
  }
  return false;
}

std::string DescribeArchitectures(absl::string_view built) {
  std::vector<std::string> names;
  bool later = false;
  for (const Architecture& have : ParseAll(built)) {
    names.push_back(have.number == 0 ? have.name
                                     : absl::StrCat(have.number / 10, ".", have.number % 10));
    later |= have.number > 0 && have.has_ptx && !have.is_alone;
  }
  return absl::StrCat(absl::StrJoin(names, ", "), later ? " and later" : "");
}

}  // namespace longhaul::compute
