#include "coordinator/plan/job.h"

#include <utility>

#include "coordinator/plan/cuts.h"

namespace longhaul::coordinator {

Cutting::Cutting(const model::Graph& graph, int64_t micro_batch, const std::vector<int>& cuts,
                 const EligibleNodes& eligible)
    : units(graph, micro_batch, cuts, CutBytes(graph, micro_batch)), memory(units) {
  for (const NodeProfile& node : eligible.nodes) costs.emplace_back(units, node);
}

Job::Job(const run::RunSpec& run_spec, model::Graph model_graph, EligibleNodes nodes,
         Links known_links)
    : spec(run_spec),
      graph(std::move(model_graph)),
      eligible(std::move(nodes)),
      links(std::move(known_links)),
      cheapest(graph, spec.train.micro_batch,
               CheapestCuts(graph, CutBytes(graph, spec.train.micro_batch)), eligible) {
  const std::vector<int> cuts = EveryCut(graph);
  if (!cuts.empty()) every.emplace(graph, spec.train.micro_batch, cuts, eligible);
}

}  // namespace longhaul::coordinator
