// A request made ready for planning: the nodes that may take part, and every cost that does not
// depend on the placement.
#ifndef LONGHAUL_COORDINATOR_PLAN_JOB_H_
#define LONGHAUL_COORDINATOR_PLAN_JOB_H_

#include <vector>

#include "coordinator/plan/cost_model.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/select_nodes.h"
#include "model/graph.h"

namespace longhaul::coordinator {

// Neither copied nor moved: its parts refer to each other.
struct Job {
  Job(const run::RunSpec& spec, model::Graph graph, EligibleNodes eligible, Links links);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int micro_batches() const { return static_cast<int>(spec.train.micro_batches()); }
  // Tokens of one micro-batch times the width of the widest cut.
  double CutElementsMax() const { return units.CutBytesMax() / sizeof(float); }

  const run::RunSpec spec;
  const model::Graph graph;
  const EligibleNodes eligible;
  const Links links;
  const Units units;
  MemoryModel memory;
  std::vector<NodeCosts> costs;  // by eligible node
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_JOB_H_
