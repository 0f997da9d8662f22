#include "coordinator/plan/job.h"

#include <utility>

namespace longhaul::coordinator {

Job::Job(const run::RunSpec& run_spec, model::Graph model_graph, EligibleNodes nodes,
         Links known_links)
    : spec(run_spec),
      graph(std::move(model_graph)),
      eligible(std::move(nodes)),
      links(std::move(known_links)),
      units(graph, spec.train.micro_batch),
      memory(units) {
  for (const NodeProfile& node : eligible.nodes) costs.emplace_back(units, node);
}

}  // namespace longhaul::coordinator
