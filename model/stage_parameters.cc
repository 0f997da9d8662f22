#include "model/stage_parameters.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace longhaul::model {

std::vector<std::vector<int>> OwnedParameters(const Graph& graph,
                                              const std::vector<OpRange>& ranges) {
  std::vector<std::vector<int>> by_stage;
  std::vector<bool> owned(graph.parameters.size(), false);
  for (const OpRange& range : ranges) {
    std::vector<int> own;
    for (const int parameter : graph.ParametersOf(range)) {
      if (owned[parameter]) continue;
      owned[parameter] = true;
      own.push_back(parameter);
    }
    by_stage.push_back(std::move(own));
  }
  return by_stage;
}

std::vector<int> ParametersTiedAcross(const Graph& graph, const std::vector<OpRange>& ranges) {
  std::vector<int> tied;
  if (ranges.size() < 2) return tied;
  const std::vector<int> first = graph.ParametersOf(ranges.front());
  const std::vector<int> last = graph.ParametersOf(ranges.back());
  std::set_intersection(first.begin(), first.end(), last.begin(), last.end(),
                        std::back_inserter(tied));
  size_t uses = 0;
  for (const ParameterUse& use : graph.Uses(ranges.back())) {
    uses += std::binary_search(tied.begin(), tied.end(), use.parameter) ? 1 : 0;
  }
  // With more uses at the end the sum would run in another order than on one stage.
  LH_CHECK(uses == tied.size(), uses, " uses of ", tied.size(),
           " tied parameters in the last stage");
  return tied;
}

}  // namespace longhaul::model
