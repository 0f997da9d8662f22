// Which stage has which parameters, once the model is cut into stages.
#ifndef LONGHAUL_MODEL_STAGE_PARAMETERS_H_
#define LONGHAUL_MODEL_STAGE_PARAMETERS_H_

#include <vector>

#include "model/graph.h"

namespace longhaul::model {

// `ranges` are those of the stages, in order: they cover the model by legal cuts.
//
// By stage and ascending: the parameters that it is the first to hold. It writes them to
// checkpoints, and counts them in the norm.
std::vector<std::vector<int>> OwnedParameters(const Graph& graph,
                                              const std::vector<OpRange>& ranges);

// Ascending: those that the first and the last stage share, of which the last has one use. None
// where they are the same stage. No other stages share any (Graph::CutPoints).
std::vector<int> ParametersTiedAcross(const Graph& graph, const std::vector<OpRange>& ranges);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_STAGE_PARAMETERS_H_
