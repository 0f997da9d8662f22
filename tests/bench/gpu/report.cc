#include "tests/bench/gpu/report.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace longhaul::gpu_check {

void PrintRow(absl::string_view part, absl::string_view name, const std::vector<Figure>& figures) {
  std::string line = absl::StrCat("row\t", part, "\t", name);
  for (const Figure& figure : figures) {
    absl::StrAppendFormat(&line, "\t%s\t%.4g\t%s", figure.label, figure.value, figure.target);
  }
  std::cout << line << std::endl;
}

void PrintShape(absl::string_view model, const std::vector<int64_t>& numbers) {
  std::cout << "shape\t" << model << "\t" << absl::StrJoin(numbers, "\t") << std::endl;
}

void PrintNote(absl::string_view text) { std::cout << "note\t" << text << std::endl; }

}  // namespace longhaul::gpu_check
