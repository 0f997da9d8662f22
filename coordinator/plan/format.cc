#include "coordinator/plan/format.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace longhaul::coordinator {
namespace {

// At least three digits that matter, no exponent, no zeros behind the point.
std::string Digits(double value) {
  if (!std::isfinite(value)) return absl::StrCat(value);
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  std::string text = absl::StrFormat("%.*f", digits, value);
  if (digits > 0) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::string FormatSeconds(double seconds) {
  if (seconds >= 0.9995) return absl::StrCat(Digits(seconds), " s");
  if (seconds >= 0.9995e-3) return absl::StrCat(Digits(seconds * 1e3), " ms");
  return absl::StrCat(Digits(seconds * 1e6), " us");
}

std::string FormatRate(double bytes_per_second) {
  return absl::StrCat(Digits(bytes_per_second * 8e-6), " Mbit/s");
}

std::string FormatMebibytes(double bytes) {
  return absl::StrCat(Digits(bytes / (1 << 20)), " MiB");
}

std::string FormatFlops(double flops_per_second) {
  if (flops_per_second >= 0.9995e12)
    return absl::StrCat(Digits(flops_per_second / 1e12), " TFLOP/s");
  return absl::StrCat(Digits(flops_per_second / 1e9), " GFLOP/s");
}

std::string FormatComparison(double seconds, double chosen_seconds) {
  const double ratio = seconds / chosen_seconds;
  const std::string difference = ratio < 0.9995 ? absl::StrFormat("%.2g %% less", (1 - ratio) * 100)
                                 : ratio < 1.0005 ? "as long"
                                 : ratio < 2 ? absl::StrFormat("%.2g %% more", (ratio - 1) * 100)
                                             : absl::StrFormat("%.3g times as long", ratio);
  return absl::StrCat(FormatSeconds(seconds), " (", difference, ")");
}

std::string FormatPercent(double part) { return absl::StrFormat("%.0f %%", part * 100); }

std::string FormatCount(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string JoinWords(const std::vector<std::string>& words) {
  if (words.size() < 2) return absl::StrJoin(words, "");
  const auto all_but_last = absl::MakeConstSpan(words).first(words.size() - 1);
  return absl::StrCat(absl::StrJoin(all_but_last, ", "), " and ", words.back());
}

std::string LayersOf(const model::Graph& graph, model::OpRange range) {
  const int first = graph.ops[range.begin].layer;
  const int last = graph.ops[range.end - 1].layer;
  if (first == graph.layers) return "head";
  const int last_block = std::min(last, graph.layers - 1);
  return absl::StrCat(first, first == last_block ? "" : absl::StrCat("-", last_block),
                      last == graph.layers ? "+head" : "");
}

std::string FormatLayers(const model::Graph& graph, model::OpRange range) {
  const std::string layers = LayersOf(graph, range);
  if (layers == "head") return "the head";
  return absl::StrCat(layers.find('-') == std::string::npos ? "layer " : "layers ", layers);
}

std::string LargestPart(const model::StageMemory& memory) {
  const std::pair<const char*, int64_t> parts[] = {
      {"weights", memory.weights + memory.working_weights},
      {"gradients", memory.gradients},
      {"optimizer", memory.optimizer},
      {"activations", memory.activations},
      {"scratch", memory.scratch},
      {"constants", memory.constants}};
  const auto* largest =
      std::max_element(std::begin(parts), std::end(parts),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return absl::StrCat(largest->first, " ", FormatMebibytes(static_cast<double>(largest->second)));
}

}  // namespace longhaul::coordinator
