// The sums of squares that ride the pipeline upstream: who counts which parameter, and what a frame
// of kind norms holds.
#ifndef LONGHAUL_WORKER_EXEC_NORMS_H_
#define LONGHAUL_WORKER_EXEC_NORMS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/graph.h"

namespace longhaul::worker {

// One parameter's part of the squared norm.
struct ParameterNorm {
  int parameter = 0;  // in Graph::parameters
  double sum_of_squares = 0;
};

// A frame is the pairs (parameter, sum of squares) of a stage and all stages after it, in stage
// order. Immutable; `graph` must outlive it.
class NormsLayout {
 public:
  // `ranges`: the operators of each stage.
  NormsLayout(const model::Graph& graph, const std::vector<model::OpRange>& ranges);

  // What stage s counts, ascending: model::OwnedParameters.
  const std::vector<int>& counted_by(int stage) const { return counted_by_[stage]; }

  static std::vector<double> ToDoubles(absl::Span<const ParameterNorm> norms);

  // The frame that `stage` sends. InvalidArgument if a parameter is missing, there twice or out of
  // its place, or a sum is negative; sums that are not finite are kept.
  absl::StatusOr<std::vector<ParameterNorm>> FromDoubles(int stage,
                                                         absl::Span<const double> values) const;

  // The squared norm of all parameters, added in the model's order so that its bits do not depend
  // on the stages. `norms` must hold every parameter once (a broken invariant otherwise).
  double Total(absl::Span<const ParameterNorm> norms) const;

 private:
  const model::Graph& graph_;
  const std::vector<std::vector<int>> counted_by_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_NORMS_H_
