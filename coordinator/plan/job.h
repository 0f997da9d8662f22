// A request made ready for planning: the nodes that may take part, and every cost that does not
// depend on the placement.
#ifndef LONGHAUL_COORDINATOR_PLAN_JOB_H_
#define LONGHAUL_COORDINATOR_PLAN_JOB_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/plan/cost_model.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/links.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/select_nodes.h"
#include "model/graph.h"

namespace longhaul::coordinator {

// The model cut in one way, and what its units cost.
struct Cutting {
  Cutting(const model::Graph& graph, const run::TrainSpec& train, const std::vector<int>& cuts,
          const EligibleNodes& eligible);
  Cutting(const Cutting&) = delete;
  Cutting& operator=(const Cutting&) = delete;

  const Units units;
  MemoryModel memory;
  std::vector<NodeCosts> costs;  // by eligible node
};

// Neither copied nor moved: its parts refer to each other.
struct Job {
  Job(const run::RunSpec& spec, model::Graph graph, EligibleNodes eligible, Links links);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int micro_batches() const { return static_cast<int>(spec.train.micro_batches()); }
  // What the node's device computes this run in.
  model::Precision PrecisionOn(const NodeProfile& node) const {
    return PrecisionOf(node, spec.train.precision);
  }
  // Tokens of one micro-batch times the width of the widest cut.
  double CutElementsMax() const { return cheapest.units.CutBytesMax() / sizeof(float); }
  double TiedBytes() const { return cheapest.units.TiedBytes(); }
  // The most stages that the model can be cut into.
  int StagesMax() const { return (every.has_value() ? *every : cheapest).units.count(); }
  // The cutting to look at first for so many stages, at most StagesMax().
  Cutting& CuttingFor(int stages) { return stages <= cheapest.units.count() ? cheapest : *every; }

  const run::RunSpec spec;
  const model::Graph graph;
  const EligibleNodes eligible;
  const Links links;
  Cutting cheapest;              // where the fewest bytes cross
  std::optional<Cutting> every;  // at every cut point, unless there are too many
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_JOB_H_
