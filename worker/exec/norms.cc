#include "worker/exec/norms.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "model/stage_parameters.h"

namespace longhaul::worker {

NormsLayout::NormsLayout(const model::Graph& graph, const std::vector<model::OpRange>& ranges)
    : graph_(graph), counted_by_(model::OwnedParameters(graph, ranges)) {}

std::vector<double> NormsLayout::ToDoubles(absl::Span<const ParameterNorm> norms) {
  std::vector<double> values;
  values.reserve(2 * norms.size());
  for (const ParameterNorm& norm : norms) {
    values.push_back(static_cast<double>(norm.parameter));
    values.push_back(norm.sum_of_squares);
  }
  return values;
}

absl::StatusOr<std::vector<ParameterNorm>> NormsLayout::FromDoubles(
    int stage, absl::Span<const double> values) const {
  std::vector<ParameterNorm> norms;
  size_t i = 0;
  for (size_t s = stage; s < counted_by_.size(); ++s) {
    for (const int parameter : counted_by_[s]) {
      const auto refuse = [&](const std::string& what) {
        return absl::InvalidArgumentError(absl::StrCat("norms of stage ", stage, ": ", what, " '",
                                                       graph_.parameters[parameter].name, "'"));
      };
      if (i + 2 > values.size()) return refuse("they end before parameter");
      if (values[i] != static_cast<double>(parameter)) {
        return refuse(absl::StrCat("number ", values[i], " stands in the place of parameter"));
      }
      if (values[i + 1] < 0) return refuse("the sum of squares is negative for parameter");
      norms.push_back({parameter, values[i + 1]});
      i += 2;
    }
  }
  if (i != values.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("norms of stage ", stage, ": ", values.size(), " numbers, ", i, " expected"));
  }
  return norms;
}

double NormsLayout::Total(absl::Span<const ParameterNorm> norms) const {
  std::vector<const ParameterNorm*> by_parameter(graph_.parameters.size(), nullptr);
  for (const ParameterNorm& norm : norms) {
    LH_CHECK(by_parameter[norm.parameter] == nullptr, "parameter ", norm.parameter, " twice");
    by_parameter[norm.parameter] = &norm;
  }
  double total = 0;
  for (size_t p = 0; p < by_parameter.size(); ++p) {
    LH_CHECK(by_parameter[p] != nullptr, "no norm of parameter ", p);
    total += by_parameter[p]->sum_of_squares;
  }
  return total;
}

}  // namespace longhaul::worker
