// Which neighbouring operators of a stage run together.
#ifndef LONGHAUL_COMPUTE_STAGE_FUSION_H_
#define LONGHAUL_COMPUTE_STAGE_FUSION_H_

#include <vector>

#include "compute/stage/op_call.h"
#include "model/graph.h"

namespace longhaul::compute {

enum class Fusion {
  kNone,
  kAddNorm,     // a sum and the norm that reads it
  kLinearGelu,  // a linear operator with bias and the GELU that reads it
  kGeluLinear,  // backward: a linear operator and the GELU that it alone reads
};

// By position of an operator in the graph: what it runs as together with the next one, forward and
// backward; kNone outside of `range`. A pair lies within it; every edge that is read elsewhere is
// written all the same.
struct FusionPlan {
  std::vector<Fusion> forward, backward;
};
FusionPlan PlanFusions(const model::Graph& graph, model::OpRange range);

// Whether the memory of two neighbours lets them run together: `next` may not write over what
// `first` reads, which one after the other is allowed. Norms may where the two are the same memory,
// since a row is read before it is written. In backward `first` is the later operator.
template <typename T>
bool MayRunTogether(Fusion fusion, const OpCall<T>& first, const OpCall<T>& next);

// Whether `to` may be written by a norm's backward that reads `from` for the last time: the two are
// the same memory or apart.
template <typename T>
bool IsSameOrApart(absl::Span<const T> from, absl::Span<const T> to);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_FUSION_H_
