#include "tests/bench/gpu/peak_rate.h"

#include "absl/strings/match.h"

namespace longhaul::gpu_check {
namespace {

struct Peak {
  absl::string_view name;
  double tera_flops;
};

// The first whose name is a part of the card's counts.
constexpr Peak kPeaks[] = {
    {"B200", 2250},        {"H200", 989},        {"GH200", 989},      {"H100 PCIe", 756},
    {"H100 NVL", 835},     {"H100", 989},        {"H800", 989},       {"A100", 312},
    {"A800", 312},         {"A30", 165},         {"A10G", 70},        {"A10", 125},
    {"A40", 149.7},        {"L40S", 362},        {"L40", 181},        {"L4", 121},
    {"RTX 6000 Ada", 364}, {"RTX A6000", 154.8}, {"RTX 4090", 165.2}, {"RTX 3090", 71},
};

}  // namespace

double PeakRate(absl::string_view name) {
  for (const Peak& peak : kPeaks) {
    if (absl::StrContains(name, peak.name)) return peak.tera_flops * 1e12;
  }
  return 0;
}

}  // namespace longhaul::gpu_check
