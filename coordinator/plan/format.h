// Numbers as people read them, for reasons, refusals and tables.
#ifndef LONGHAUL_COORDINATOR_PLAN_FORMAT_H_
#define LONGHAUL_COORDINATOR_PLAN_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/cost.h"

namespace longhaul::coordinator {

// Three digits that matter: "812 ms", "1.35 s", "250 us".
std::string FormatSeconds(double seconds);
// "1000 Mbit/s", "40 Mbit/s", "0.5 Mbit/s".
std::string FormatRate(double bytes_per_second);
// "5300 MiB", "0.25 MiB".
std::string FormatMebibytes(double bytes);
// "50 GFLOP/s", "1.2 TFLOP/s".
std::string FormatFlops(double flops_per_second);
// A plan's seconds beside those of the chosen one: "950 ms (17 % more)", "2.1 s (2.6 times as
// long)".
std::string FormatComparison(double seconds, double chosen_seconds);
// "91 %".
std::string FormatPercent(double part);
// "1 stage", "3 stages".
std::string FormatCount(int64_t count, absl::string_view noun);
// "a", "a and b", "a, b and c".
std::string JoinWords(const std::vector<std::string>& words);
// "3", "0-2", "4-5+head", "head".
std::string LayersOf(const model::Graph& graph, model::OpRange range);
// "layer 3", "layers 0-2", "layers 4-5+head", "the head".
std::string FormatLayers(const model::Graph& graph, model::OpRange range);
// The largest part of a stage's memory: "optimizer 2000 MiB".
std::string LargestPart(const model::StageMemory& memory);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_FORMAT_H_
