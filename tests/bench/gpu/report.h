// What the check found, as lines that tools/gpu_check/run.sh lays out and judges.
#ifndef LONGHAUL_TESTS_BENCH_GPU_REPORT_H_
#define LONGHAUL_TESTS_BENCH_GPU_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace longhaul::gpu_check {

struct Figure {
  std::string label;  // with its unit
  double value = 0;
  std::string target = "-";  // "<= 0.01", ">= 0.45"; "-": only shown
};

// Prints "row", what was measured and its figures, separated by tabs, as one line at once.
void PrintRow(absl::string_view part, absl::string_view name, const std::vector<Figure>& figures);

// Prints "shape", a model's name and numbers, for PyTorch's side of the comparison (torch_side.py
// says which), separated by tabs.
void PrintShape(absl::string_view model, const std::vector<int64_t>& numbers);

// A sentence about the rows around it: why something was not measured, or how.
void PrintNote(absl::string_view text);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_REPORT_H_
