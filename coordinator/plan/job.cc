#include "coordinator/plan/job.h"

#include <utility>

#include "coordinator/plan/cuts.h"

namespace longhaul::coordinator {

Cutting::Cutting(const model::Graph& graph, const run::TrainSpec& train,
                 const std::vector<int>& cuts, const EligibleNodes& eligible)
    : units(graph, train.micro_batch, cuts, CutBytes(graph, train.micro_batch)), memory(units) {
  for (const NodeProfile& node : eligible.nodes) costs.emplace_back(units, node, train.precision);
}

Job::Job(const run::RunSpec& run_spec, model::Graph model_graph, EligibleNodes nodes,
         Links known_links)
    : spec(run_spec),
      graph(std::move(model_graph)),
      eligible(std::move(nodes)),
      links(std::move(known_links)),
      cheapest(graph, spec.train, CheapestCuts(graph, CutBytes(graph, spec.train.micro_batch)),
               eligible) {
  const std::vector<int> cuts = EveryCut(graph);
  if (!cuts.empty()) every.emplace(graph, spec.train, cuts, eligible);
}

}  // namespace longhaul::coordinator
